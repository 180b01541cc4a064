package loglimit

import (
	"maps"
	"slices"
)

// Once remembers which kinds of log lines were logged. The zero value is ready for use.
// It is not safe for concurrent use.
type Once[K comparable] struct{ logged map[K]bool }

// First reports whether a line of the kind must be logged: it was not since the last
// call of [Once.Reset].
func (o *Once[K]) First(kind K) bool {
	if o.logged[kind] {
		return false
	}
	if o.logged == nil {
		o.logged = map[K]bool{}
	}
	o.logged[kind] = true
	return true
}

// Update replaces the remembered kinds with the current ones. It returns those that must
// be logged, because they are new since the last call.
func (o *Once[K]) Update(current []K) (added []K) {
	former := o.logged
	o.logged = make(map[K]bool, len(current))
	for _, kind := range current {
		if o.First(kind) && !former[kind] {
			added = append(added, kind)
		}
	}
	return added
}

// Reset forgets everything.
func (o *Once[K]) Reset() { clear(o.logged) }

// Len returns the number of remembered kinds.
func (o *Once[K]) Len() int { return len(o.logged) }

// Kinds returns the remembered kinds in any order.
func (o *Once[K]) Kinds() []K { return slices.Collect(maps.Keys(o.logged)) }
