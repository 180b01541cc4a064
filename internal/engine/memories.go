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
	r.costly.Delete(key)
}

// find returns the key of the object with the name. Only few operators ask, so
// that the names are sorted when the first one does.
func (r *resource) find(name string) (key string) {
	if r.named == nil {
		r.named, r.shared = map[string]string{}, map[string]bool{}
		for key, m := range r.memories {
			r.enroll(key, m)
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
			key = m.UID // not to keep it twice
		}
		r.memories[key] = m
		r.enroll(key, m)
	}
	return m
}

// enroll makes an object be found by its name, if anybody asks for names.
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

// strike makes an object not be found anymore. A successor of the same name came
// after it, most likely, or before it, ahead of a listing.
func (r *resource) strike(key string, m *process.Memory) {
	name := m.Namespace + "/" + m.Name
	switch {
	case r.named[name] != key:
		delete(r.shared, name)
	case r.shared[name]:
		r.named = nil // to be sorted again
	default:
		delete(r.named, name)
	}
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
		return m == nil || r.kind.TurnIfSettled(ctx, m, e)
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

// forget drops what is remembered of an object that is gone. The event is that of
// its deletion; it may be nil.
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
