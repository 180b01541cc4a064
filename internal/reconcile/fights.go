package reconcile

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
)

const (
	// fightWindow is the time in which repairs of a child are counted, and the time
	// between repairs during a fight.
	fightWindow = time.Minute
	// maxRepairs limits the repairs of a child in that time.
	maxRepairs = 5
)

// Fights counts the repairs of the children of one object. The zero value is ready for
// use. It is not safe for concurrent use.
type Fights struct {
	repaired map[children.Key][]time.Time
	told     map[children.Key]bool
}

// repair counts a repair. If there were too many, it returns the time until the next
// repair is allowed, and does not count this one.
func (f *Fights) repair(k children.Key, now time.Time) (pause time.Duration) {
	if f.repaired == nil {
		f.repaired, f.told = map[children.Key][]time.Time{}, map[children.Key]bool{}
	}
	recent := slices.DeleteFunc(f.repaired[k], func(at time.Time) bool { return now.Sub(at) >= fightWindow })
	if len(recent) >= maxRepairs {
		f.repaired[k] = recent
		return fightWindow - now.Sub(recent[len(recent)-1])
	}
	if len(recent) == 0 {
		delete(f.told, k)
	}
	f.repaired[k] = append(recent, now)
	return 0
}

// fight notes that another client keeps changing a child.
func (x *run) fight(ctx context.Context, w *handler.Wanted, pause time.Duration) {
	x.result.Again = pause
	message := fmt.Sprintf("%s is changed back and forth with another client", w.Key)
	if x.Fights.first(w.Key) {
		message += x.rivals(ctx, w)
		x.result.Fight = message + "; if that client sets fields on purpose, use CreateOnlyFields for them"
	}
	x.wait(message)
}

// first reports whether the fight about a child is new.
func (f *Fights) first(k children.Key) bool {
	if f.told[k] {
		return false
	}
	f.told[k] = true
	return true
}

// rivals returns the other managers of the child, as a part of a message. It is empty if
// they cannot be read.
func (x *run) rivals(ctx context.Context, w *handler.Wanted) string {
	body, err := x.Objects.Get(ctx, kube.Target{Info: w.Info, Namespace: w.Namespace, Name: w.Name})
	if err != nil {
		return ""
	}
	var head struct {
		Metadata struct {
			ManagedFields []metav1.ManagedFieldsEntry `json:"managedFields"`
		} `json:"metadata"`
	}
	if body.Decode(&head) != nil {
		return ""
	}
	var names []string
	for _, e := range head.Metadata.ManagedFields {
		if e.Manager != x.Name && e.Manager != x.Name+"-initial" && e.Subresource == "" && !slices.Contains(names, e.Manager) {
			names = append(names, e.Manager)
		}
	}
	if len(names) == 0 {
		return ""
	}
	return " (" + strings.Join(names, ", ") + ")"
}
