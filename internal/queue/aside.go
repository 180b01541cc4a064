package queue

// returning is a turn that was aside.
type returning struct {
	group string
	back  chan struct{} // closed when the turn is active again
}

// Aside runs a blocking call within a turn of the group without occupying an active slot,
// so other turns proceed. memory is that of the turn, in bytes; see [Config.Crowd].
func (q *Queue[K, E]) Aside(group string, memory int, fn func()) {
	if q.config.Active == 0 {
		fn()
		return
	}
	q.leave(group, memory)
	defer q.back(group, memory)
	fn()
}

// Inside runs a part of a call of [Queue.Aside] in an active slot. It waits for the slot.
// memory must be that of the call.
func (q *Queue[K, E]) Inside(group string, memory int, fn func()) {
	if q.config.Active == 0 {
		fn()
		return
	}
	q.back(group, memory)
	defer q.leave(group, memory)
	fn()
}

// leave gives the active slot of a turn of the group to others.
func (q *Queue[K, E]) leave(group string, memory int) {
	q.config.Crowd.join(group, memory)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.activate(group, -1)
	q.advance()
}

// back waits until the turn may be active again.
func (q *Queue[K, E]) back(group string, memory int) {
	q.config.Crowd.leave(group, memory)
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
	close(r.back)
}
