package queue

// patience is how many urgent turns in a row may begin before another one does.
const patience = 7

// ready holds the actors whose turns can begin, in their order.
type ready[E any] struct {
	urgent, others fifo[*actor[E]]
	row            int // urgent ones in a row
	costly         fifo[*actor[E]]
}

func (r *ready[E]) push(a *actor[E], urgent bool) {
	if urgent {
		r.urgent.push(a)
	} else {
		r.others.push(a)
	}
}

// pop returns the actor whose turn begins now. Costly turns wait in a line of their
// own until admit lets the first of them begin, so that others overtake them.
func (r *ready[E]) pop(admit func(*actor[E]) bool) (next *actor[E], ok bool) {
	if first, some := r.costly.first(); some && admit(first) {
		return r.costly.pop()
	}
	for {
		a, ok := r.popAny()
		if !ok {
			return nil, false
		}
		if a.cost() == 0 {
			return a, true
		}
		if _, some := r.costly.first(); !some && admit(a) {
			return a, true
		}
		r.costly.push(a)
	}
}

func (r *ready[E]) popAny() (a *actor[E], ok bool) {
	if r.row < patience {
		if a, ok = r.urgent.pop(); ok {
			r.row++
			return a, true
		}
	}
	r.row = 0
	if a, ok = r.others.pop(); ok {
		return a, true
	}
	return r.urgent.pop()
}

// fifo gives things back in the order in which it got them.
type fifo[T any] struct{ items []T }

func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

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
		f.items = nil // so that what a storm has needed does not stay
	}
	return item, true
}
