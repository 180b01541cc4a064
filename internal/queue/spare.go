package queue

// maxSpare limits the goroutines that wait for a turn to run.
const maxSpare = 8

// start runs a turn in a spare goroutine, or in a new one. The stack of a new goroutine is
// small, and growing it during a turn costs about as much as decoding an object. The lock
// must be held.
func (q *Queue[K, E]) start(turn func()) {
	last := len(q.spare) - 1
	if last < 0 {
		q.wait.Go(func() { q.work(turn) })
		return
	}
	q.spare[last] <- turn
	q.spare = q.spare[:last]
}

// work runs a turn, and then those that it receives as a spare goroutine.
func (q *Queue[K, E]) work(turn func()) {
	turns := make(chan func(), 1)
	for turn != nil {
		turn()
		if !q.rest(turns) {
			return
		}
		turn = <-turns // nil after dismiss
	}
}

// rest makes the goroutine a spare one. It returns false if the goroutine must end: there
// are enough of them, or no turn is running.
func (q *Queue[K, E]) rest(turns chan func()) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.turns == 0 || q.closed {
		q.dismiss()
		return false
	}
	if len(q.spare) == maxSpare {
		return false
	}
	q.spare = append(q.spare, turns)
	return true
}

// dismiss ends the spare goroutines. The lock must be held.
func (q *Queue[K, E]) dismiss() {
	for _, turns := range q.spare {
		close(turns)
	}
	q.spare = nil
}
