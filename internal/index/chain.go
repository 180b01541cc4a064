package index

import "sync/atomic"

// chain is a linked list that can be iterated while it is being changed.
//
// # Guarantees
//
// Iterating takes no lock: it blocks neither writers nor other readers, and the loop
// body may change the chain. Every value that is in the chain from the start to the end
// of an iteration is yielded exactly once. Values that are removed before they are
// reached are not yielded, and neither are values that are pushed after the start.
//
// # Assumptions
//
// There is one writer at a time, and a removed link is not used again.
//
// It works because links are pushed only at the front, and a removed link keeps its
// pointer to the next one. A reader on a removed link therefore reaches the next
// remaining link, possibly over other removed ones, and cannot skip any.
type chain[T any] struct {
	first atomic.Pointer[link[T]]
	size  int // for writers, and for readers that hold the lock
}

// link is an element of a chain.
type link[T any] struct {
	value  atomic.Pointer[T] // nil after it was removed
	next   atomic.Pointer[link[T]]
	before *link[T] // for writers
}

// push inserts an unused link at the front.
func (c *chain[T]) push(l *link[T], value *T) {
	behind := c.first.Load()
	l.value.Store(value)
	l.next.Store(behind)
	if behind != nil {
		behind.before = l
	}
	c.first.Store(l)
	c.size++
}

// remove removes a link. It must not be used again.
func (c *chain[T]) remove(l *link[T]) {
	l.value.Store(nil)
	behind := l.next.Load()
	if l.before == nil {
		c.first.Store(behind)
	} else {
		l.before.next.Store(behind)
	}
	if behind != nil {
		behind.before = l.before
	}
	l.before = nil // otherwise it would keep unused links in memory
	c.size--
}

// walk calls yield for each value, newest first, until it returns false.
func (c *chain[T]) walk(yield func(*T) bool) {
	for l := c.first.Load(); l != nil; l = l.next.Load() {
		if value := l.value.Load(); value != nil && !yield(value) {
			return
		}
	}
}
