package queue

import "sync"

// Crowd limits the memory of the turns that are in [Queue.Aside] at the same time, and of other
// calls, for each group. Several queues may share it. It counts turns that have started and
// stops none of them: a group that has reached the limit only starts no more turns. A nil Crowd
// has no limit.
type Crowd struct {
	Limit int // of one group, in bytes
	// Reached is called when a group reaches the limit, without any lock held. May be nil.
	Reached func(group string)

	mu      sync.Mutex
	used    shares
	waiting map[string]map[any]func() // by group and queue
}

// Enter counts a call of the group until leave is called, unless the group has reached the limit.
// Then leave is nil, and notify is called once when the group may try again, without any lock
// held. For each owner and group, only the last notify counts. The caller of leave must hold no
// lock that notify needs.
func (c *Crowd) Enter(group string, memory int, owner any, notify func()) (leave func()) {
	if !c.open(group, owner, notify) {
		return nil
	}
	c.join(group, memory)
	return func() { c.leave(group, memory) }
}

// open reports whether the group may start another turn. If not, notify is called once when it
// may, without any lock held.
func (c *Crowd) open(group string, owner any, notify func()) bool {
	if c == nil {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.used[group] < c.Limit {
		return true
	}
	if c.waiting == nil {
		c.waiting = map[string]map[any]func(){}
	}
	if c.waiting[group] == nil {
		c.waiting[group] = map[any]func(){}
	}
	c.waiting[group][owner] = notify
	return false
}

// join counts a turn of the group.
func (c *Crowd) join(group string, memory int) {
	if c == nil || memory <= 0 {
		return
	}
	c.mu.Lock()
	before := c.used[group]
	c.used.add(memory, group)
	c.mu.Unlock()
	if before < c.Limit && before+memory >= c.Limit && c.Reached != nil {
		c.Reached(group)
	}
}

// leave no longer counts a turn of the group. The caller must hold no lock of a queue.
func (c *Crowd) leave(group string, memory int) {
	if c == nil || memory <= 0 {
		return
	}
	c.mu.Lock()
	c.used.add(-memory, group)
	var waiting map[any]func()
	if c.used[group] < c.Limit {
		waiting = c.waiting[group]
		delete(c.waiting, group)
	}
	c.mu.Unlock()
	for _, notify := range waiting {
		notify()
	}
}
