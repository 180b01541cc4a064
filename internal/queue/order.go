package queue

// patience is the maximum number of urgent turns in a row while others wait.
const patience = 7

// ready contains the actors whose turns wait to start, in order.
type ready[E any] struct {
	urgent, others fifo[*actor[E]]
	row            int // urgent turns in a row
	costly         fifo[*actor[E]]
}

func (r *ready[E]) push(a *actor[E], urgent bool) {
	if urgent {
		r.urgent.push(a)
	} else {
		r.others.push(a)
	}
}

// pop returns the actor whose turn starts next. Costly turns wait in a separate line
// until admit returns true for the first of them. Other turns overtake them.
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

// fifo is a first-in first-out queue.
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
		f.items = nil // release the memory that a burst needed
	}
	return item, true
}
