// Package index implements in-memory indices: users' functions fill them, one object at
// a time, and handlers of any object look them up.
//
// It has three parts. [Index] contains the values. [Indexers] calls the functions for
// an object and applies their outcomes; the decisions are pure, see [Failure]. [Gate]
// is the barrier that holds back all other handlers until the indices are filled for
// the first time.
package index

import (
	"iter"
	"sync"
)

// Index contains values under keys. Each value belongs to one object. An object may
// have one value under each of any number of keys, and a key may have values of any
// number of objects. Equal values of several objects count separately.
//
// # Guarantees
//
// All methods are safe for concurrent use, even within loops over the index. A lookup
// copies nothing, and its cost does not depend on the size of the index. The cost of an
// update depends only on the number of keys that the object has and had. No lock is
// held while a loop body runs.
//
// A loop yields each value that is present from its start to its end exactly once, as
// it was when the loop reached it. Values that are removed before they are reached are
// not yielded. No object is yielded twice under one key. The order is not specified.
//
// # Caveats
//
// Several lookups may be inconsistent with each other because objects change in
// between: Count and a loop, for example, or two loops. A loop over all keys may yield
// an object twice, or not at all, if its keys change meanwhile.
type Index[K comparable, V any] struct {
	mu      sync.RWMutex
	keys    map[K]*store[K, V]
	order   chain[store[K, V]]      // the same stores, for iteration
	objects map[string]*entry[K, V] // the first entry; the others are its siblings
	turn    uint64                  // counts updates
}

// store contains the values of one key. It is never empty.
type store[K comparable, V any] struct {
	place  link[store[K, V]] // in Index.order
	key    K
	values chain[V]
	first  entry[K, V] // of values: most keys have only one, stored inline for speed
	seen   uint64      // the last update whose object had a value here before
}

// entry is the value of one object under one key.
type entry[K comparable, V any] struct {
	place   link[V] // in store.values
	store   *store[K, V]
	sibling *entry[K, V] // another entry of the same object
}

// New returns an empty index.
func New[K comparable, V any]() *Index[K, V] {
	return &Index[K, V]{keys: map[K]*store[K, V]{}, objects: map[string]*entry[K, V]{}}
}

// Put replaces all values of the object in the index. nil or an empty map removes the
// object. The map is neither kept nor changed.
//
// object must be unique among all objects in the index, across resources; for example
// the uid.
func (x *Index[K, V]) Put(object string, values map[K]V) {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.turn++
	var all *entry[K, V]
	for e := x.objects[object]; e != nil; {
		other := e.sibling
		if v, stays := values[e.store.key]; stays {
			e.place.value.Store(new(v))
			e.store.seen = x.turn
			e.sibling, all = all, e
		} else {
			x.drop(e)
		}
		e = other
	}
	for key, v := range values {
		if _, found := values[key]; !found {
			continue // a NaN key can be neither looked up nor removed
		}
		s := x.keys[key]
		if s != nil && s.seen == x.turn {
			continue
		}
		all = x.add(s, key, new(v), all)
	}
	if all == nil {
		delete(x.objects, object)
	} else {
		x.objects[object] = all
	}
}

// add adds an entry to s, or to a new store if s is nil.
func (x *Index[K, V]) add(s *store[K, V], key K, v *V, sibling *entry[K, V]) *entry[K, V] {
	var e *entry[K, V]
	if s != nil {
		e = &entry[K, V]{}
	} else {
		s = &store[K, V]{key: key}
		e = &s.first
		x.keys[key] = s
		x.order.push(&s.place, s)
	}
	e.store, e.sibling = s, sibling
	s.values.push(&e.place, v)
	return e
}

// Remove removes the object from the index if it is present.
func (x *Index[K, V]) Remove(object string) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for e := x.objects[object]; e != nil; {
		other := e.sibling
		x.drop(e)
		e = other
	}
	delete(x.objects, object)
}

// drop removes an entry from its store, and removes the store if it is empty then.
func (x *Index[K, V]) drop(e *entry[K, V]) {
	s := e.store
	s.values.remove(&e.place)
	e.sibling = nil // the store may keep this entry in memory, which must not keep others
	if s.values.size == 0 {
		delete(x.keys, s.key)
		x.order.remove(&s.place)
	}
}

// Replace is Put with an untyped map: values must be a map[K]V.
func (x *Index[K, V]) Replace(object string, values any) { x.Put(object, values.(map[K]V)) }

// find returns the store of the key, or nil.
func (x *Index[K, V]) find(key K) *store[K, V] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.keys[key]
}

// Has reports whether there are values under the key.
func (x *Index[K, V]) Has(key K) bool { return x.find(key) != nil }

// Count returns the number of values under the key.
func (x *Index[K, V]) Count(key K) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if s := x.keys[key]; s != nil {
		return s.values.size
	}
	return 0
}

// Len returns the number of keys.
func (x *Index[K, V]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.keys)
}

// One returns the newest value under the key. found is false if there is none.
func (x *Index[K, V]) One(key K) (v V, found bool) {
	for v := range x.Get(key) {
		return v, true
	}
	return v, false
}

// Get returns a sequence of the values under the key. The key is looked up when the
// loop starts.
func (x *Index[K, V]) Get(key K) iter.Seq[V] {
	return func(yield func(V) bool) {
		s := x.find(key)
		if s == nil {
			return
		}
		for v := range s.values.walk {
			if !yield(*v) {
				return
			}
		}
	}
}

// Keys returns a sequence of the keys that have values.
func (x *Index[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for s := range x.order.walk {
			if !yield(s.key) {
				return
			}
		}
	}
}

// All returns a sequence of all values with their keys.
func (x *Index[K, V]) All() iter.Seq2[K, V] {
	return func(yield func(K, V) bool) {
		for s := range x.order.walk {
			for v := range s.values.walk {
				if !yield(s.key, *v) {
					return
				}
			}
		}
	}
}
