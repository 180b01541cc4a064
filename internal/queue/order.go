package queue

// patience is the maximum number of urgent turns in a row while others wait.
const patience = 7

// ready contains the turns that wait to start, in order.
type ready struct {
	urgent, others fifo[func()]
	row            int // urgent turns in a row
}

func (r *ready) push(turn func(), urgent bool) {
	if urgent {
		r.urgent.push(turn)
	} else {
		r.others.push(turn)
	}
}

func (r *ready) pop() (turn func(), ok bool) {
	if r.row < patience {
		if turn, ok = r.urgent.pop(); ok {
			r.row++
			return turn, true
		}
	}
	r.row = 0
	if turn, ok = r.others.pop(); ok {
		return turn, true
	}
	return r.urgent.pop()
}

// fifo is a first-in first-out queue.
type fifo[T any] struct{ items []T }

func (f *fifo[T]) push(item T) { f.items = append(f.items, item) }

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
