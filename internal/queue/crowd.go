package queue

import (
	"maps"
	"slices"
	"sync"
)

// Crowd limits the memory of the turns that are in [Queue.Aside] at the same time, and of other
// calls, for each group and for all of them. Several queues may share it. It counts turns that
// have started and stops none of them: a group that has reached the limit only starts no more
// turns. A nil Crowd has no limit.
type Crowd struct {
	Limit int // of one group, in bytes
	// Total limits all groups together. A group with less than Least starts turns all the same.
	// 0 means no limit.
	Total, Least int
	// Reached is called when a group reaches the limit, without any lock held, and with the
	// largest group when all together reach theirs. May be nil.
	Reached func(group string)

	mu      sync.Mutex
	used    shares
	all     int                       // the sum of used
	waiting map[string]map[any]func() // by group and queue
}

// room reports whether the group may start another turn. The lock must be held.
func (c *Crowd) room(group string) bool {
	used := c.used[group]
	return used < c.Limit && (c.Total == 0 || used < c.Least || c.all < c.Total)
}

// calm is the memory of all groups from which on those that wait for them may try again. It is
// less than Total: many calls must end before many groups try.
func (c *Crowd) calm() int { return c.Total - c.Total/8 }

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
	if c.room(group) {
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
	before, all := c.used[group], c.all
	c.used.add(memory, group)
	c.all += memory
	reached, largest := before < c.Limit && before+memory >= c.Limit, group
	if !reached && c.Total > 0 && all < c.Total && c.all >= c.Total {
		reached = true
		for other, used := range c.used {
			if used > c.used[largest] {
				largest = other
			}
		}
	}
	c.mu.Unlock()
	if reached && c.Reached != nil {
		c.Reached(largest)
	}
}

// leave no longer counts a turn of the group. The caller must hold no lock of a queue.
func (c *Crowd) leave(group string, memory int) {
	if c == nil || memory <= 0 {
		return
	}
	var notify []func()
	for _, again := range c.left(group, memory) {
		notify = slices.AppendSeq(notify, maps.Values(again))
	}
	for _, again := range notify {
		again()
	}
}

// left subtracts the memory of a turn that has left. It returns the waiting groups that may try
// again, which no longer wait.
func (c *Crowd) left(group string, memory int) (again []map[any]func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	before := c.all
	c.used.add(-memory, group)
	c.all -= memory
	take := func(group string) {
		if waiting := c.waiting[group]; waiting != nil && c.room(group) {
			again = append(again, waiting)
			delete(c.waiting, group)
		}
	}
	take(group)
	if before >= c.calm() && c.all < c.calm() {
		for other := range c.waiting {
			take(other)
		}
	}
	return again
}
