// Package alarm calls functions at given times. It keeps all times in one heap with one
// timer, so waiting needs no goroutine.
package alarm

import (
	"container/heap"
	"context"
	"sync"
	"time"
)

// Clock calls a function for each key when it is due. A key has at most one due time.
// All methods are safe for concurrent use.
type Clock[K comparable] struct {
	ring  func(K)
	start time.Time // of the clock

	mu     sync.Mutex
	queue  queue[K]
	byKey  map[K]*entry[K]
	change chan struct{} // signals Run that the earliest time may have changed
}

// New returns a clock that calls ring for every due key. ring must not block for long,
// because the other keys wait for it.
func New[K comparable](ring func(K)) *Clock[K] {
	return &Clock[K]{ring: ring, start: time.Now(), byKey: map[K]*entry[K]{}, change: make(chan struct{}, 1)}
}

// Set makes the key due at the given time. It replaces an earlier time of the key.
func (c *Clock[K]) Set(key K, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		e.at = at
		heap.Fix(&c.queue, e.index)
	} else {
		e = &entry[K]{key: key, at: at, since: time.Since(c.start)}
		c.byKey[key] = e
		heap.Push(&c.queue, e)
	}
	if c.queue[0].key == key {
		c.wake()
	}
}

// Cancel removes the key.
func (c *Clock[K]) Cancel(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e := c.byKey[key]; e != nil {
		heap.Remove(&c.queue, e.index)
		delete(c.byKey, key)
	}
}

// Len returns the number of waiting keys.
func (c *Clock[K]) Len() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.queue)
}

// Count returns the number of waiting keys for which of returns true, and how long the
// first of them has waited. of must not block.
func (c *Clock[K]) Count(of func(K) bool) (n int, oldest time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, e := range c.byKey {
		if of(key) {
			n++
			oldest = max(oldest, time.Since(c.start)-e.since)
		}
	}
	return n, oldest
}

// Overdue returns how long the earliest key has been due without a call.
func (c *Clock[K]) Overdue() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.queue) == 0 {
		return 0
	}
	return max(0, time.Since(c.queue[0].at))
}

// Run calls ring until ctx ends.
func (c *Clock[K]) Run(ctx context.Context) {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	for {
		next, found := c.ringDue()
		if found {
			timer.Reset(time.Until(next))
		} else {
			timer.Stop()
		}
		select {
		case <-ctx.Done():
			return
		case <-timer.C:
		case <-c.change:
		}
	}
}

// ringDue calls ring for all due keys and returns the next due time.
func (c *Clock[K]) ringDue() (next time.Time, found bool) {
	for {
		c.mu.Lock()
		if len(c.queue) == 0 {
			c.mu.Unlock()
			return time.Time{}, false
		}
		first := c.queue[0]
		if at := first.at; at.After(time.Now()) {
			c.mu.Unlock()
			return at, true
		}
		heap.Pop(&c.queue)
		delete(c.byKey, first.key)
		c.mu.Unlock()
		c.ring(first.key) // without the lock: it may set the key again
	}
}

func (c *Clock[K]) wake() {
	select {
	case c.change <- struct{}{}:
	default:
	}
}

type entry[K comparable] struct {
	key   K
	at    time.Time
	since time.Duration // from the start of the clock to that of the wait; shorter than a time
	index int
}

type queue[K comparable] []*entry[K]

func (q queue[K]) Len() int           { return len(q) }
func (q queue[K]) Less(i, j int) bool { return q[i].at.Before(q[j].at) }
func (q queue[K]) Swap(i, j int) {
	q[i], q[j] = q[j], q[i]
	q[i].index, q[j].index = i, j
}

func (q *queue[K]) Push(x any) {
	e := x.(*entry[K])
	e.index = len(*q)
	*q = append(*q, e)
}

func (q *queue[K]) Pop() any {
	old := *q
	last := old[len(old)-1]
	old[len(old)-1] = nil
	*q = old[:len(old)-1]
	return last
}
