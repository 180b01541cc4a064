package engine

import "sync"

// crew are functions that run, and may grow while somebody waits for its end:
// unlike a sync.WaitGroup, which must not be joined in the moment in which it is
// empty and waited for.
type crew struct {
	mu      sync.Mutex
	members int
	empty   chan struct{} // closed when nobody is left; nil if nobody waits for that
}

// Go runs a function.
func (c *crew) Go(fn func()) {
	c.mu.Lock()
	c.members++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		fn()
	}()
}

func (c *crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members--; c.members == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// Empty is closed when nobody is left.
func (c *crew) Empty() <-chan struct{} {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members == 0 {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	if c.empty == nil {
		c.empty = make(chan struct{})
	}
	return c.empty
}
