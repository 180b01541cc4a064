// Package crew has a group of goroutines that may grow while another goroutine waits
// for its end.
package crew

import "sync"

// Crew is a group of goroutines that allows new members while another goroutine
// waits. A sync.WaitGroup forbids that at the moment when it is empty. The zero value is
// ready to use.
type Crew struct {
	mu      sync.Mutex
	members int
	empty   chan struct{} // closed when no member is left; nil means that no goroutine waits
}

// Go runs a function in a new goroutine.
func (c *Crew) Go(fn func()) {
	c.mu.Lock()
	c.members++
	c.mu.Unlock()
	go func() {
		defer c.leave()
		fn()
	}()
}

func (c *Crew) leave() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.members--; c.members == 0 && c.empty != nil {
		close(c.empty)
		c.empty = nil
	}
}

// Empty returns a channel that is closed when no member is left.
func (c *Crew) Empty() <-chan struct{} {
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
