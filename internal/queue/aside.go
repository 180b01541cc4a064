package queue

// returning is a turn that was aside.
type returning struct {
	group string
	back  chan struct{} // closed when the turn is active again
}

// Aside runs a blocking call within a turn of the group without occupying an active slot,
// so other turns proceed.
func (q *Queue[K, E]) Aside(group string, fn func()) {
	if q.config.Active == 0 {
		fn()
		return
	}
	q.leave(group)
	defer q.back(group)
	fn()
}

// Inside runs a part of a call of [Queue.Aside] in an active slot. It waits for the slot.
func (q *Queue[K, E]) Inside(group string, fn func()) {
	if q.config.Active == 0 {
		fn()
		return
	}
	q.back(group)
	defer q.leave(group)
	fn()
}

// leave gives the active slot of a turn of the group to others.
func (q *Queue[K, E]) leave(group string) {
	q.mu.Lock()
	q.activate(group, -1)
	q.away[group]++
	crowded := q.away[group] == q.config.Away
	q.advance()
	q.mu.Unlock()
	if crowded && q.config.Crowded != nil {
		q.config.Crowded(group)
	}
}

// back waits until the turn may be active again.
func (q *Queue[K, E]) back(group string) {
	granted := make(chan struct{})
	q.mu.Lock()
	q.returning.push(group, returning{group, granted})
	q.advance()
	q.mu.Unlock()
	<-granted
}

// reactivate makes a turn that was aside active again. The lock must be held.
func (q *Queue[K, E]) reactivate(r returning) {
	q.activate(r.group, 1)
	if q.away[r.group]--; q.away[r.group] == 0 {
		delete(q.away, r.group)
	}
	close(r.back)
}
