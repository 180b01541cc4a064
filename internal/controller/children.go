package controller

import (
	"context"
	"maps"
	"slices"

	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
)

// Children has the means of reconcile handlers.
type Children struct {
	Runner *reconcile.Runner
	// Listed reports whether the children of a handler are listed.
	Listed func(*handler.Handler) bool
	// Conditions reports whether the status of a resource can have conditions and the
	// observed generation.
	Conditions func(context.Context, kind.Info) (conditions, observed bool)
	References *childwatch.References
}

// reconcilersOf returns the reconcile handlers. nil means that there are none.
func (c *Controller) reconcilersOf(handlers handler.Set) *process.Reconcile {
	if len(handlers) == 0 {
		return nil
	}
	with := c.config.Children
	return &process.Reconcile{
		Handlers: handlers, Runner: with.Runner, Listed: with.Listed, Conditions: with.Conditions, References: with.References,
	}
}

// WakeOwned queues a turn of the object with the uid, because a child of the kind has
// changed. namespace is that of the child. Other controllers, unknown objects, and objects
// that cannot have children in the namespace are not affected.
func (c *Controller) WakeOwned(uid string, of kind.Info, namespace string) {
	c.wakeKnown(uid, func(m *process.Memory) *process.Wake {
		switch {
		case namespace == "" || m.Namespace() == namespace:
			return &process.Wake{Owned: []kind.Info{of}}
		case m.Namespace() == "" || c.ownsAnywhere(of):
			return &process.Wake{Far: []kind.Info{of}}
		}
		return nil
	})
}

// WakeWatched queues a turn of the object with the uid, because an object that one of its
// reconcile handlers refers to has changed.
func (c *Controller) WakeWatched(uid, handler string) {
	c.wakeKnown(uid, func(*process.Memory) *process.Wake { return &process.Wake{Watched: []string{handler}} })
}

// wakeKnown queues a turn of the object with the uid, if it is known and wake returns a
// reason.
func (c *Controller) wakeKnown(uid string, wake func(*process.Memory) *process.Wake) {
	if c.processor.Reconcile == nil {
		return
	}
	c.mu.Lock()
	m := c.memories[uid]
	c.mu.Unlock()
	if m == nil {
		return
	}
	if w := wake(m); w != nil {
		c.put(uid, entry{wake: w})
	}
}

// ownsAnywhere reports whether a handler may have children of the kind in all namespaces.
func (c *Controller) ownsAnywhere(of kind.Info) bool {
	return slices.ContainsFunc(c.processor.Reconcile.Handlers, func(h *handler.Handler) bool {
		_, anywhere := h.Reconcile.Owns(of)
		return anywhere
	})
}

// WakeOwners queues turns of all objects that may have children of the kind, because such
// children are listed now. It does nothing while the handlers wait for the lists of other
// kinds.
func (c *Controller) WakeOwners(of kind.Info) {
	if c.processor.Reconcile == nil || !slices.ContainsFunc(c.processor.Reconcile.Handlers, func(h *handler.Handler) bool {
		owned, _ := h.Reconcile.Owns(of)
		return (owned || h.Reconcile.Watches(of)) && c.processor.Reconcile.Listed(h)
	}) {
		return
	}
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.memories))
	c.mu.Unlock()
	for _, key := range keys {
		c.put(key, entry{wake: &process.Wake{Listed: true}})
	}
}
