package index

import "sync/atomic"

// chain is a list that can be walked while it is being changed.
//
// # Guarantees
//
// Walking takes no lock and needs none: neither writers nor other walkers are
// ever kept waiting, and the one who walks may do anything to the chain. What
// is in the chain from the beginning of a walk to its end is come across
// exactly once. What is removed before it is reached is not come across; nor is
// what is pushed after the walk began.
//
// # Assumptions
//
// There is one writer at a time, and a link that was removed is not used again.
//
// The reason why it works: links are pushed at the front only, and a removed
// link keeps pointing at the one that was behind it. So whoever stands on a
// removed link gets, maybe by way of others that were removed later, to the
// next one that is left, and cannot have passed over any.
type chain[T any] struct {
	first atomic.Pointer[link[T]]
	size  int // for writers, and for those who keep them out
}

// link is a place in a chain.
type link[T any] struct {
	value  atomic.Pointer[T] // nil when it was removed
	next   atomic.Pointer[link[T]]
	before *link[T] // for writers
}

// push puts an unused link to the front.
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

// remove takes a link out for good.
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
	l.before = nil // it would keep alive what nobody needs
	c.size--
}

// walk calls the function for each value, the newest link first, until it
// returns false.
func (c *chain[T]) walk(yield func(*T) bool) {
	for l := c.first.Load(); l != nil; l = l.next.Load() {
		if value := l.value.Load(); value != nil && !yield(value) {
			return
		}
	}
}
