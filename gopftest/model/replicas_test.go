package model_test

import (
	"fmt"
	"math/rand/v2"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// TestReplicasTakeTurns runs two replicas with an election, which are killed,
// stopped, paused and separated from the cluster at random. Only the one with the
// lease writes.
func TestReplicasTakeTurns(t *testing.T) {
	forSeeds(t, 15, func(t *testing.T, r *rand.Rand) *world {
		th := pick(r, themes)
		w := newWorld(t, randomDeclaration(r, th), randomEnvironment(r))
		u := newUsers(r, th, []string{"x0", "x1"}[:pick(r, []int{1, 2})]...)
		u.slots = 2
		plan := randomPlan(r, th, u)
		w.supervise(2)
		quiet(time.Second)
		w.perform(plan)
		w.finish()
		return w
	})
}

// TestVersionsReplaceEachOther runs one or two replicas of an operator, and
// replaces them by those of another version, while users go on.
func TestVersionsReplaceEachOther(t *testing.T) {
	forSeeds(t, 10, func(t *testing.T, r *rand.Rand) *world {
		th := pick(r, themes)
		w := newWorld(t, randomDeclaration(r, th), randomEnvironment(r))
		next := nextVersion(r, th, w.declaration)
		w.next = &next
		w.history.add("the next version:\n%s", next)
		u := newUsers(r, th, "x0", "x1")
		u.slots = pick(r, []int{1, 2})
		plan := randomPlan(r, th, u)
		rolled := r.IntN(len(plan))
		plan[rolled] = roll(r, u.slots, plan[rolled])
		w.supervise(u.slots)
		quiet(time.Second)
		w.perform(plan)
		w.finish()
		return w
	})
}

// nextVersion is an operator that has one handler renamed, one dropped, or one
// added.
func nextVersion(r *rand.Rand, th theme, d declaration) declaration {
	next := d
	next.handlers = nil
	for _, h := range d.handlers {
		switch {
		case h.kind == "change" && chance(r, 30):
			h.formerly, h.id = h.id, h.id+"-new"
		case h.kind == "change" && len(h.subs) == 0 && chance(r, 15):
			continue
		}
		next.handlers = append(next.handlers, h)
	}
	if len(next.handlers) == 0 || chance(r, 40) {
		h := randomChange(r, th, "added")
		h.on, h.subs, h.added = gopf.Create|gopf.Update, nil, true
		next.handlers = append(next.handlers, h)
	}
	return next
}

// roll adds to an episode that the replicas are replaced, one after another.
func roll(r *rand.Rand, slots int, episode []action) []action {
	at := r.IntN(len(episode))
	rolled := append([]action{}, episode[:at]...)
	for slot := range slots {
		rolled = append(rolled, action{
			after: pick(r, []time.Duration{0, time.Second, 20 * time.Second}), text: fmt.Sprint("replace replica ", slot),
			do: func(w *world) { w.replace(slot) },
		})
		if at < len(episode) && slot == 0 {
			rolled = append(rolled, episode[at])
			at++
		}
	}
	return append(rolled, episode[at:]...)
}

// replace stops a replica, and starts the next version in its place.
func (w *world) replace(slot int) {
	w.mu.Lock()
	w.versions[slot] = 1
	p := w.slots[slot]
	last := true
	for _, v := range w.versions {
		last = last && v == 1
	}
	if last {
		w.oracle.replaced(w.declaration, *w.next)
		w.declaration = *w.next
	}
	w.mu.Unlock()
	p.stop()
}

// replaced is told that only the next version of the operator is left.
func (o *oracle) replaced(was, is declaration) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.declaration = is
	o.dropped = map[string]bool{}
	known := is.all()
	for id := range was.all() {
		if _, stays := known[id]; !stays {
			o.dropped[annotationName(id)] = true
		}
	}
	for _, h := range is.handlers {
		if h.formerly != "" {
			delete(o.dropped, annotationName(h.formerly))
		}
	}
}
