package engine

import (
	"context"
	"iter"
	"maps"
	"slices"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// abandon stops the daemons of all objects and removes the objects from indices. The
// resource is no longer served.
func (r *resource) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, m := range r.memories {
		r.leave(key, m)
	}
}

// leave does the same for one object that is no longer served. The caller must hold
// r.mu.
func (r *resource) leave(key string, m *process.Memory) {
	m.Forget(daemon.ErrUnmatched)
	if r.kind.Indexers != nil {
		r.kind.Indexers.Remove(key)
	}
	delete(r.memories, key)
	r.costly.Delete(key)
}

// find returns the key of the object with the name, which is namespace/name. "" means
// that it is unknown. Few operators look up names, so the first call builds the map.
// The caller must hold r.mu.
func (r *resource) find(name string) (key string) {
	if r.named == nil {
		r.named, r.shared = map[string]string{}, map[string]bool{}
		for key, m := range r.memories {
			r.enroll(key, m)
		}
	}
	return r.named[name]
}

// recall returns the memory of an object. For an event about a new object, it creates
// one. nil means that the turn must be skipped: the object is deleted, is unknown, or is
// in a namespace that is no longer served.
func (r *resource) recall(key string, e entry) *process.Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[key]
	if m == nil && e.event != nil {
		if r.left[e.event.Body.Namespace] {
			return nil
		}
		if e.event.Listed() {
			r.gone.revive(key, e.event.List)
		}
		if version, ok := e.event.Body.Version(); ok && r.served.Select != "" && !e.event.Gone() {
			r.gone.readmit(key, version)
		}
		if r.gone.has(key) {
			return nil
		}
		m = process.NewMemory(e.event)
		if m.UID == key {
			key = m.UID // store one copy of the string
		}
		r.memories[key] = m
		r.enroll(key, m)
	}
	return m
}

// enroll adds an object to the map of names, if that map is used. The caller must hold
// r.mu.
func (r *resource) enroll(key string, m *process.Memory) {
	if r.named == nil {
		return
	}
	name := m.Namespace + "/" + m.Name
	if r.named[name] != "" {
		r.shared[name] = true
	}
	r.named[name] = key
}

// strike removes an object from the map of names. An object of the same name may have
// been added after it, or before it if a watch event overtook the list. The caller must
// hold r.mu.
func (r *resource) strike(key string, m *process.Memory) {
	name := m.Namespace + "/" + m.Name
	switch {
	case r.named[name] != key:
		delete(r.shared, name)
	case r.shared[name]:
		r.named = nil // the next find builds it again
	default:
		delete(r.named, name)
	}
}

// skim handles an event without a turn if there is almost nothing to do, and reports
// whether it did. Most events are like that: unchanged objects of a list, and the
// operator's own writes.
func (r *resource) skim(ctx context.Context, e *process.Event) bool {
	if r.paused.Load() || e.Gone() {
		return false
	}
	key := e.Body.Key()
	return r.queue.Try(key, func() bool {
		m := r.recall(key, entry{event: e})
		return m == nil || r.kind.TurnIfSettled(ctx, m, e)
	})
}

// setLeft stores whether a namespace is no longer served. Queued events of such a
// namespace are dropped.
func (r *resource) setLeft(namespace string, left bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !left {
		delete(r.left, namespace)
		return
	}
	if r.left == nil {
		r.left = map[string]bool{}
	}
	r.left[namespace] = true
}

// forget drops the memory of a deleted object and stores its deletion. event is the
// deletion event. It may be nil.
func (r *resource) forget(key string, m *process.Memory, event *process.Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
	r.costly.Delete(key)
	of := grave{mark: m.Mark()}
	if event != nil {
		of.version, _ = event.Body.Version()
	}
	r.gone.add(key, of)
	r.strike(key, m)
}

// known returns the objects that exist in the namespace, as far as the operator knows.
// An empty namespace means all.
func (r *resource) known(namespace string) iter.Seq[object.Identity] {
	r.mu.Lock()
	defer r.mu.Unlock()
	memories := slices.Collect(maps.Values(r.memories))
	return func(yield func(object.Identity) bool) {
		for _, m := range memories {
			if namespace != "" && m.Namespace != namespace {
				continue
			}
			if !yield(object.Identity{UID: m.UID, Namespace: m.Namespace, Name: m.Name}) {
				return
			}
		}
	}
}

// forgetNamespace drops the memories of a namespace that is no longer served. It does
// nothing if the namespace is served again.
func (r *resource) forgetNamespace(namespace string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.left[namespace] {
		return
	}
	for key, m := range r.memories {
		if m.Namespace == namespace {
			r.leave(key, m)
		}
	}
	r.named = nil
}
