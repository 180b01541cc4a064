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

// abandon ends what goes on beside the objects, which are not served anymore.
func (r *resource) abandon() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for key, m := range r.memories {
		r.leave(key, m)
	}
}

// leave ends what goes on beside an object that is not served anymore.
func (r *resource) leave(key string, m *process.Memory) {
	m.Forget(daemon.ErrUnmatched)
	if r.kind.Indexers != nil {
		r.kind.Indexers.Remove(key)
	}
	delete(r.memories, key)
}

// find returns the key of the object with the name. Only few operators ask, so
// that the names are sorted when the first one does.
func (r *resource) find(name string) (key string) {
	if r.named == nil {
		r.named = map[string]string{}
		for key, m := range r.memories {
			r.named[m.Namespace+"/"+m.Name] = key
		}
	}
	return r.named[name]
}

func (r *resource) recall(key string, e entry) *process.Memory {
	r.mu.Lock()
	defer r.mu.Unlock()
	m := r.memories[key]
	if m == nil && e.event != nil {
		if r.left[e.event.Body.Namespace] {
			return nil
		}
		if e.event.Listed() {
			r.gone.revive(key)
		} else if r.gone.has(key) {
			return nil
		}
		m = process.NewMemory(e.event)
		if m.UID == key {
			key = m.UID // not to keep it twice
		}
		r.memories[key] = m
		if r.named != nil {
			r.named[m.Namespace+"/"+m.Name] = key
		}
	}
	return m
}

// skim deals with an event at once, if there is next to nothing to do about it,
// and returns whether it did. Such is most of what a stream brings: objects that
// are as they were, and our own writes.
func (r *resource) skim(ctx context.Context, e *process.Event) bool {
	if r.paused.Load() || e.Gone() {
		return false
	}
	key := e.Body.Key()
	return r.queue.Try(key, func() bool {
		m := r.recall(key, entry{event: e})
		return m == nil || r.kind.Skim(ctx, m, e)
	})
}

// setLeft notes whether a namespace is not served anymore: what still waits of it
// is dropped.
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

func (r *resource) forget(key string, m *process.Memory) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.memories, key)
	r.gone.add(key)
	if r.named[m.Namespace+"/"+m.Name] == key { // it may be of a successor already
		delete(r.named, m.Namespace+"/"+m.Name)
	}
}

// known are the objects that are believed to exist in the namespace.
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

// forgetNamespace drops what is remembered of a namespace not served anymore,
// unless it is again.
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
