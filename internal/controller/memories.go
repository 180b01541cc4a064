package controller

import (
	"context"
	"iter"
	"maps"
	"slices"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// abandon stops the daemons of all objects and removes the objects from indices. The
// resource is no longer served.
func (c *Controller) abandon() {
	c.mu.Lock()
	defer c.mu.Unlock()
	for key, m := range c.memories {
		c.leave(key, m)
	}
}

// leave does the same for one object that is no longer served. The caller must hold
// c.mu.
func (c *Controller) leave(key string, m *process.Memory) {
	m.Forget(daemon.ErrUnmatched)
	c.processor.Unpause(m)
	if c.processor.Indexers != nil {
		c.processor.Indexers.Remove(key)
	}
	c.erase(key, m)
	c.costly.Delete(key)
	c.indexed.Delete(key)
}

// find returns the key of the object with the name, which is namespace/name. "" means
// that it is unknown. Few operators look up names, so the first call builds the map.
// The caller must hold c.mu.
func (c *Controller) find(name string) (key string) {
	if c.named == nil {
		c.named, c.shared = map[string]string{}, map[string]bool{}
		for key, m := range c.memories {
			c.enroll(key, m)
		}
	}
	return c.named[name]
}

// recall returns the memory of an object. For an event about a new object, it creates
// one. nil means that the turn must be skipped: the object is deleted, is unknown, or is
// in a namespace that is no longer served.
func (c *Controller) recall(key string, e entry) *process.Memory {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[key]
	if m == nil && e.event != nil {
		if namespace := e.event.Body.Namespace; !c.serves(namespace) || e.event.Mark < c.left[namespace].returned {
			return nil
		}
		if e.event.Listed() {
			c.gone.revive(key, e.event.List)
		}
		if version, ok := e.event.Body.Version(); ok && c.served.Select != "" && !e.event.Gone() {
			c.gone.readmit(key, version)
		}
		if c.gone.has(key) {
			return nil
		}
		m = process.NewMemory(e.event)
		if m.UID() == key {
			key = m.UID() // store one copy of the string
		}
		c.memorize(key, m)
		c.enroll(key, m)
	}
	if m != nil && e.event != nil {
		c.noteSelection(key, e)
	}
	return m
}

// enroll adds an object to the map of names, if that map is used. The caller must hold
// c.mu.
func (c *Controller) enroll(key string, m *process.Memory) {
	if c.named == nil {
		return
	}
	name := m.Namespace() + "/" + m.Name()
	if c.named[name] != "" {
		c.shared[name] = true
	}
	c.named[name] = key
}

// strike removes an object from the map of names. An object of the same name may have
// been added after it, or before it if a watch event overtook the list. The caller must
// hold c.mu.
func (c *Controller) strike(key string, m *process.Memory) {
	name := m.Namespace() + "/" + m.Name()
	switch {
	case c.named[name] != key:
		delete(c.shared, name)
	case c.shared[name]:
		c.named = nil // the next find builds it again
	default:
		delete(c.named, name)
	}
}

// Memos returns the memos of an object. nil means that the object is unknown.
func (c *Controller) Memos(uid string) *handler.Memos {
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[uid]; m != nil {
		return m.Memos()
	}
	return nil
}

// skim handles an event without a turn if there is almost nothing to do, and reports
// whether it did. Most events are like that: unchanged objects of a list, and the
// operator's own writes.
func (c *Controller) skim(ctx context.Context, e *process.Event) bool {
	if c.config.Paused() || e.Gone() || c.processor.Indexers != nil && c.costOf(e.Body) > 0 {
		return false // decoding a large object for the indexes would delay all other objects
	}
	key := e.Body.Key()
	return c.queue.Try(key, func() bool {
		m := c.recall(key, entry{event: e})
		return m == nil || c.processor.TurnIfSettled(ctx, m, e)
	})
}

// follow is skim for an event that arrived during the turn of its object. Most of them are
// effects of the turn: the response to a write may arrive after its event.
func (c *Controller) follow(ctx context.Context, key string, e entry) bool {
	if e.event == nil || e.event.Gone() || c.cost(key, e) > 0 || e.left || e.alarm || e.hurry || e.wake != nil || e.since != c.pauses.Load() || c.config.Paused() || c.indexOnly.Load() {
		return false
	}
	m := c.recall(key, e)
	return m == nil || c.processor.TurnIfSettled(ctx, m, e.event)
}

// setServed stores whether a namespace is served. Queued events of a namespace that is no
// longer served are dropped, even if it is served again before their turns: the memories of
// their objects are gone, and the next list shows the objects that exist.
func (c *Controller) setServed(namespace string, served bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces == nil {
		c.namespaces, c.left = map[string]bool{}, departures{}
	}
	if served {
		c.namespaces[namespace] = true
		c.left.back(namespace, c.processor.Mark)
		return
	}
	delete(c.namespaces, namespace)
	c.left.add(namespace, c.processor.Mark)
}

// serves reports whether a namespace is served. The caller must hold c.mu.
func (c *Controller) serves(namespace string) bool {
	return c.namespaces == nil || c.namespaces[""] || c.namespaces[namespace]
}

// forget drops the memory of a deleted object and stores its deletion. event is the
// deletion event. It may be nil.
func (c *Controller) forget(key string, m *process.Memory, event *process.Event) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.erase(key, m)
	c.costly.Delete(key)
	c.indexed.Delete(key)
	of := grave{mark: m.Mark()}
	if event != nil {
		of.version, _ = event.Body.Version()
	}
	c.gone.add(key, of)
	c.strike(key, m)
}

// known returns the objects that exist in the namespace, as far as the operator knows.
// An empty namespace means all.
func (c *Controller) known(namespace string) iter.Seq[object.Identity] {
	c.mu.Lock()
	defer c.mu.Unlock()
	memories := slices.Collect(maps.Values(c.within(namespace)))
	return func(yield func(object.Identity) bool) {
		for _, m := range memories {
			if !yield(object.Identity{UID: m.UID(), Namespace: m.Namespace(), Name: m.Name()}) {
				return
			}
		}
	}
}

// forgetNamespace drops the memories of a namespace that is no longer served. It does
// nothing if the namespace is served again.
func (c *Controller) forgetNamespace(namespace string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.namespaces[namespace] {
		return
	}
	for key, m := range c.within(namespace) {
		c.leave(key, m)
		c.strike(key, m)
	}
	delete(c.missed, namespace)
	delete(c.unlisted, namespace)
}
