// Package index keeps what users want to know of many objects at once: indices
// that are filled by users' functions, one object at a time, and are looked up
// by handlers of any other object.
//
// There are three parts. [Index] holds the values. [Indexers] calls the functions
// for an object and does with its values what the outcomes demand; the decisions
// themselves are pure, see [Failure]. [Gate] tells when all indices are filled
// for the first time, before which no other handler is to run.
package index

import (
	"iter"
	"sync"
)

// Index holds values under keys. Each value belongs to one object; an object can
// have one value under each of any number of keys, and a key can have values of
// any number of objects. Equal values of several objects are several values.
//
// # Guarantees
//
// All methods can be used at any time from anywhere, loops over the index
// included. No look-up copies anything, and what it costs does not depend on how
// much there is. What an update costs depends only on how many keys the object
// has and had. No lock is held while the body of a loop runs.
//
// A loop yields each value that is there from the beginning to the end exactly
// once, as it was when the loop got there. Values that are removed before they
// are reached are not yielded. No object is yielded twice under one key. Nothing
// else is said about the order.
//
// # Caveats
//
// What several look-ups tell may not fit together, because objects come and go
// in between: neither Count and a loop, nor two loops. A loop over all keys may
// meet an object twice, or not at all, if it changes its keys meanwhile.
type Index[K comparable, V any] struct {
	mu      sync.RWMutex
	keys    map[K]*store[K, V]
	order   chain[store[K, V]]      // the same stores, for walking
	objects map[string]*entry[K, V] // the first one; the others are its siblings
	turn    uint64                  // counts updates
}

// store is what is under one key; it is never empty.
type store[K comparable, V any] struct {
	place  link[store[K, V]] // in Index.order
	key    K
	values chain[V]
	first  entry[K, V] // of values: most keys have one, which is found faster here
	seen   uint64      // the last update whose object had a value here before
}

// entry is the value of one object under one key.
type entry[K comparable, V any] struct {
	place   link[V] // in store.values
	store   *store[K, V]
	sibling *entry[K, V] // another one of the same object
}

// New makes an empty index.
func New[K comparable, V any]() *Index[K, V] {
	return &Index[K, V]{keys: map[K]*store[K, V]{}, objects: map[string]*entry[K, V]{}}
}

// Put makes the values all that the object has in the index; nil or an empty map
// takes it out. The map is not kept and not changed.
//
// The object is named by anything that tells it from all others, also those of
// other resources if they are in the same index, such as its uid.
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
			continue // a NaN: it could be neither looked up nor ever removed
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

// add makes an entry in the store, or in a new one if it is nil.
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

// Remove takes the object out of the index, if it is there.
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

// drop takes an entry out of its store, and the store away if it is empty then.
func (x *Index[K, V]) drop(e *entry[K, V]) {
	s := e.store
	s.values.remove(&e.place)
	e.sibling = nil // the entry may stay with its store: nothing else must with it
	if s.values.size == 0 {
		delete(x.keys, s.key)
		x.order.remove(&s.place)
	}
}

// Replace is Put with the type of the map erased: values must be a map[K]V.
func (x *Index[K, V]) Replace(object string, values any) { x.Put(object, values.(map[K]V)) }

// find is the store of the key, nil if there is none.
func (x *Index[K, V]) find(key K) *store[K, V] {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return x.keys[key]
}

// Has tells whether there are values under the key.
func (x *Index[K, V]) Has(key K) bool { return x.find(key) != nil }

// Count is the number of values under the key.
func (x *Index[K, V]) Count(key K) int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	if s := x.keys[key]; s != nil {
		return s.values.size
	}
	return 0
}

// Len is the number of keys.
func (x *Index[K, V]) Len() int {
	x.mu.RLock()
	defer x.mu.RUnlock()
	return len(x.keys)
}

// One is one of the values under the key, the one that came last; found is false
// if there is none.
func (x *Index[K, V]) One(key K) (v V, found bool) {
	for v := range x.Get(key) {
		return v, true
	}
	return v, false
}

// Get loops over the values under the key. The key is looked up when the loop
// begins.
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

// Keys loops over the keys that have values.
func (x *Index[K, V]) Keys() iter.Seq[K] {
	return func(yield func(K) bool) {
		for s := range x.order.walk {
			if !yield(s.key) {
				return
			}
		}
	}
}

// All loops over all values with their keys.
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
