package queue

import "slices"

// patience is the maximum number of urgent turns in a row while others wait.
const patience = 7

// ready contains the actors whose turns wait to start, in order.
type ready[E any] struct {
	urgent, others lines[*actor[E]]
	row            int // urgent turns in a row
	costly         lines[*actor[E]]
	modest         lines[*actor[E]]
	turn           bool // the lines of modest turns go first
}

func (r *ready[E]) push(a *actor[E], group string, urgent bool) {
	if urgent {
		r.urgent.push(group, a)
	} else {
		r.others.push(group, a)
	}
}

// gate admits turns to the active slots of their group, and to the memory of a budget.
type gate[E any] interface {
	open(a *actor[E]) bool // the group of the actor may have another active turn
	admit(a *actor[E]) bool
	idle(a *actor[E]) bool // the group of the actor has no memory of the budget
}

// pop returns the actor whose turn starts next. Modest and costly turns that are not
// admitted wait in a line for each group. Other turns overtake them.
func (r *ready[E]) pop(g gate[E]) (next *actor[E], ok bool) {
	if next, ok = r.popCostly(g); ok {
		return next, true
	}
	if r.turn = !r.turn; r.turn { // the lines of modest turns must not delay the others
		if next, ok = r.popModest(g); ok {
			return next, true
		}
	}
	for {
		a, some := r.popAny(g)
		if !some {
			break
		}
		if r.starts(a, g) {
			return a, true
		}
	}
	if next, ok = r.popModest(g); ok {
		return next, true
	}
	return r.popCostly(g)
}

// popCostly returns an actor from the lines of costly turns. Groups that have no such turn
// go first. If there is no room for one of them, the others wait: otherwise their smaller
// turns could take all room again and again.
func (r *ready[E]) popCostly(g gate[E]) (next *actor[E], ok bool) {
	blocked := false
	next, ok = r.costly.pop(func(a *actor[E]) bool {
		if !g.idle(a) || !g.open(a) {
			return false
		}
		admitted := g.admit(a)
		blocked = blocked || !admitted
		return admitted
	})
	if ok || blocked {
		return next, ok
	}
	return r.costly.pop(func(a *actor[E]) bool { return g.open(a) && g.admit(a) })
}

// popModest returns an actor from the lines of modest turns.
func (r *ready[E]) popModest(g gate[E]) (next *actor[E], ok bool) {
	for {
		a, ok := r.modest.pop(func(a *actor[E]) bool { return g.open(a) && (a.next().size != modest || g.admit(a)) })
		if !ok || a.next().size == modest {
			return a, ok
		}
		if r.starts(a, g) { // its entry has changed
			return a, true
		}
	}
}

// starts reports whether the turn of an actor starts now. If not, the actor waits in a
// line.
func (r *ready[E]) starts(a *actor[E], g gate[E]) bool {
	switch need := a.next(); need.size {
	case modest:
		if r.modest.has(need.group) || !g.admit(a) {
			r.modest.push(need.group, a)
			return false
		}
	case large:
		if len(r.costly.of) > 0 || !g.admit(a) {
			r.costly.push(need.group, a)
			return false
		}
	}
	return true
}

func (r *ready[E]) popAny(g gate[E]) (a *actor[E], ok bool) {
	if r.row < patience {
		if a, ok = r.urgent.pop(g.open); ok {
			r.row++
			return a, true
		}
	}
	r.row = 0
	if a, ok = r.others.pop(g.open); ok {
		return a, true
	}
	return r.urgent.pop(g.open)
}

// lines has a line of waiting items for each group. The groups take turns.
type lines[T any] struct {
	groups fifo[string]
	of     map[string]*fifo[T]
}

func (l *lines[T]) has(group string) bool { return l.of[group] != nil }

func (l *lines[T]) push(group string, item T) {
	line := l.of[group]
	if line == nil {
		if l.of == nil {
			l.of = map[string]*fifo[T]{}
		}
		line = &fifo[T]{}
		l.of[group] = line
		l.groups.push(group)
	}
	line.push(item)
}

// pop returns the first item of the first group for which admit returns true.
func (l *lines[T]) pop(admit func(T) bool) (next T, ok bool) {
	for range len(l.groups.items) {
		group, _ := l.groups.first()
		line := l.of[group]
		first, _ := line.first() // a line is never empty
		if !admit(first) {
			l.groups.rotate()
			continue
		}
		if line.pop(); len(line.items) > 0 {
			l.groups.rotate()
			return first, true
		}
		l.groups.pop()
		if delete(l.of, group); len(l.of) == 0 {
			l.of = nil // release the memory that a burst needed
		}
		return first, true
	}
	return next, false
}

// remove removes the items of a group that match. It reports whether there were some.
func (l *lines[T]) remove(group string, match func(T) bool) bool {
	line := l.of[group]
	if line == nil {
		return false
	}
	before := len(line.items)
	line.items = slices.DeleteFunc(line.items, match)
	if len(line.items) == 0 {
		l.groups.items = slices.DeleteFunc(l.groups.items, func(other string) bool { return other == group })
		if delete(l.of, group); len(l.of) == 0 {
			l.of = nil
		}
	}
	return len(line.items) < before
}

// fifo is a first-in first-out queue.
type fifo[T any] struct{ items []T }

func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

// rotate moves the first item to the end.
func (f *fifo[T]) rotate() {
	if len(f.items) > 1 {
		item, _ := f.pop()
		f.push(item)
	}
}

func (f *fifo[T]) first() (item T, ok bool) {
	if len(f.items) == 0 {
		return item, false
	}
	return f.items[0], true
}

func (f *fifo[T]) pop() (item T, ok bool) {
	if len(f.items) == 0 {
		return item, false
	}
	var none T
	item, f.items[0] = f.items[0], none
	if f.items = f.items[1:]; len(f.items) == 0 {
		f.items = nil // release the memory that a burst needed
	}
	return item, true
}
