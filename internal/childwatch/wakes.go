package childwatch

import (
	"slices"
	"sync"

	"gopf.dev/gopf/kind"
)

// wakes has the names that have changed, until the owners that refer to them are woken. It has at
// most one entry for each name and each namespace of owners, whatever the number of events. A
// goroutine wakes the owners; it exists only while there are entries.
//
// The namespaces of the owners take turns, not those of the changed objects: the work is that of the
// owners, and a name counts for the tenants who refer to it. So a tenant with many owners delays
// only them, even if they refer to an object of another tenant, or of the platform.
//
// The lock of [References] guards all fields except done.
type wakes struct {
	changed map[*referrers][]string // the kinds of the changed objects with the name
	lines   map[string]*line        // by the namespaces of the owners
	order   []string                // the namespaces with a line; that of the next step is the first
	kinds   map[string]kind.Info    // by their names
	steps   uint64                  // the number of steps so far
	running bool                    // the goroutine exists
	closed  bool
	done    sync.WaitGroup
}

// line has the changed names that the owners of a namespace refer to, in the order of the changes.
type line struct {
	waiting []*referrers
	current round
}

// round wakes the owners that refer to one name. A change that is noted after its beginning waits for
// another round.
type round struct {
	of    *referrers // nil means that there is none
	kinds []kind.Info
	left  int    // the number of uses that are not visited yet, which are the first ones
	began uint64 // the step in which it began
}

// maxStep limits the uses that a step visits, so the owners of other namespaces are soon next. A wake
// may take a millisecond, because it waits for the locks of a busy queue.
const maxStep = 16

// mark notes that the owners that refer to an object must be woken. The lock must be held.
func (r *References) mark(info kind.Info, changed *referent) {
	w := &r.wakes
	to := r.named[changed.name]
	if w.closed || len(to) == 0 {
		return
	}
	if w.changed == nil {
		w.changed, w.lines, w.kinds = map[*referrers][]string{}, map[string]*line{}, map[string]kind.Info{}
	}
	w.kinds[changed.kind] = info
	for _, of := range to {
		kinds, waits := w.changed[of]
		if slices.Contains(kinds, changed.kind) {
			continue
		}
		w.changed[of] = append(kinds, changed.kind)
		if waits {
			continue
		}
		l := w.lines[of.namespace]
		if l == nil {
			l = &line{}
			w.lines[of.namespace], w.order = l, append(w.order, of.namespace)
		}
		l.waiting = append(l.waiting, of)
	}
	if !w.running {
		w.running = true
		w.done.Go(r.wakeAll)
	}
}

// wakeAll wakes owners until no change waits.
func (r *References) wakeAll() {
	for {
		next, more := r.step()
		if !more {
			return
		}
		for _, w := range next {
			r.Wake(w.owner, w.handler)
		}
	}
}

// step returns the next handlers to wake, which are of one namespace. If no change waits, more is
// false, and the goroutine must end.
func (r *References) step() (next []*watcher, more bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	w := &r.wakes
	if len(w.order) == 0 {
		w.running = false
		w.changed, w.lines, w.order, w.kinds = nil, nil, nil, nil // release the memory that a burst needed
		return nil, false
	}
	w.steps++
	namespace := w.order[0]
	l := w.lines[namespace]
	for visits := maxStep; visits > 0 && l.begin(w); {
		some, n := l.current.visit(visits, w.steps)
		next = append(next, some...)
		visits -= max(1, n) // a name that has lost its references counts too
		if l.current.left == 0 {
			l.current = round{}
		}
	}
	if w.order = w.order[1:]; l.current.of == nil && len(l.waiting) == 0 {
		delete(w.lines, namespace)
	} else {
		w.order = append(w.order, namespace)
	}
	return next, true
}

// begin begins a round, unless one is not complete. It reports whether there is one.
func (l *line) begin(w *wakes) bool {
	if l.current.of != nil {
		return true
	}
	if len(l.waiting) == 0 {
		return false
	}
	of := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	l.current = round{of: of, left: len(of.uses), began: w.steps}
	for _, name := range w.changed[of] {
		l.current.kinds = append(l.current.kinds, w.kinds[name])
	}
	delete(w.changed, of)
	return true
}

// visit returns the handlers to wake of up to most uses, and the number of uses.
//
// References may come and go between two steps. The round goes from the last use to the first: the
// place of a use that goes is filled with the last use, so none of those that are left is missed. A new
// use needs no wake: its handler is about to read the object; see [References.Set].
func (o *round) visit(most int, step uint64) (next []*watcher, visited int) {
	end := min(o.left, len(o.of.uses))
	o.left = max(0, end-most)
	for _, u := range o.of.uses[o.left:end] {
		refersTo := func(k kind.Info) bool { return u.by.of[u.index].Matches(k) }
		if u.by.woken >= o.began || !slices.ContainsFunc(o.kinds, refersTo) { // a wake since the beginning of the round is enough
			continue
		}
		u.by.woken = step
		next = append(next, u.by)
	}
	return next, end - o.left
}

// close drops the changes that wait, ignores later ones, and waits for the goroutines.
func (r *References) close() {
	r.mu.Lock()
	w := &r.wakes
	w.closed = true
	w.changed, w.lines, w.order = nil, nil, nil
	r.mu.Unlock()
	w.done.Wait()
}
