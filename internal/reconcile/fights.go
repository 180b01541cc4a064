package reconcile

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
)

const (
	// fightWindow is the time in which repairs of a child are counted, and the time
	// between repairs during a fight.
	fightWindow = time.Minute
	// maxRepairs limits the repairs of a child in that time.
	maxRepairs = 5
	// fewFights is the number of children below which old repairs are not forgotten. The
	// names of children may come from the object, and change again and again.
	fewFights = 16
)

// Fights counts the repairs of the children of one object. The zero value is ready for
// use. It is not safe for concurrent use.
type Fights struct {
	repaired map[children.Key][]time.Time
	told     map[children.Key]string // the message about the present fight
	blindly  map[children.Key]blindApply
	left     int // the number of children after old repairs were last forgotten
}

// Repair counts a repair. If there were too many, it returns the time until the next
// repair is allowed, and does not count this one.
func (f *Fights) Repair(k children.Key, now time.Time) (pause time.Duration) {
	if f.repaired == nil {
		f.repaired, f.told = map[children.Key][]time.Time{}, map[children.Key]string{}
	}
	if len(f.repaired) >= max(fewFights, 2*f.left) {
		f.tidy(now)
	}
	recent := slices.DeleteFunc(f.repaired[k], func(at time.Time) bool { return now.Sub(at) >= fightWindow })
	if len(recent) >= maxRepairs {
		f.repaired[k] = recent
		return fightWindow - now.Sub(recent[len(recent)-1])
	}
	if len(recent) == 0 {
		delete(f.told, k)
	}
	f.repaired[k.Clone()] = append(recent, now)
	return 0
}

// tidy forgets the children that were not repaired in the last minute.
func (f *Fights) tidy(now time.Time) {
	for k, times := range f.repaired {
		if now.Sub(times[len(times)-1]) >= fightWindow {
			delete(f.repaired, k)
			delete(f.told, k)
		}
	}
	f.left = len(f.repaired)
}

// fight notes that another client keeps changing a child.
func (x *run) fight(ctx context.Context, w *handler.Wanted, pause time.Duration) {
	if x.result.Again == 0 || pause < x.result.Again {
		x.result.Again = pause
	}
	message := fmt.Sprintf("%s is changed back and forth with another client", w.Key)
	if x.Fights.first(w.Key) {
		if field, rival := x.rival(ctx, w); field != "" {
			message = fmt.Sprintf("%s of %s is changed back and forth with %s", field, w.Key, rival)
		}
		x.result.Fight = message + "; if that client sets the field on purpose, use CreateOnlyFields for it"
		x.Fights.told[w.Key.Clone()] = message
	}
	x.wait(x.Fights.told[w.Key])
}

// first reports whether the fight about a child is new.
func (f *Fights) first(k children.Key) bool { return f.told[k] == "" }

// rival returns a declared field that another client has changed, and the name of that
// client. Both are empty if they are not known, for example because the child was deleted.
func (x *run) rival(ctx context.Context, w *handler.Wanted) (field, name string) {
	leave, err := x.enter(ctx, x.Owner.Namespace)
	if err != nil {
		return "", ""
	}
	defer leave()
	body, err := x.get(ctx, w.Info, w.Key)
	if err != nil || body == nil {
		return "", ""
	}
	entries, _ := managedFields(body)
	ours := map[string]any{}
	for _, e := range entries {
		if e["manager"] == x.Name && e["operation"] == "Apply" && e["subresource"] == nil {
			ours, _ = e["fieldsV1"].(map[string]any)
		}
	}
	for _, e := range entries {
		if e["manager"] == x.Name || e["manager"] == x.Name+"-initial" {
			continue
		}
		theirs, _ := e["fieldsV1"].(map[string]any)
		if fields := children.Contested(w.Fields, theirs, ours); len(fields) > 0 {
			return fields[0], fmt.Sprint(e["manager"])
		}
	}
	return "", ""
}
