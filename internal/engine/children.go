package engine

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// owned has the watches of children. It does nothing if no handler declares children.
type owned struct {
	handlers handler.Set
	watches  *childwatch.Watches
	// wanted has the watches that each handler needs. nil means that none may run now.
	wanted atomic.Pointer[map[*handler.Handler][]childwatch.Watch]

	mu    sync.Mutex
	known map[schema.GroupVersionResource][2]bool // whether status.conditions and status.observedGeneration exist
}

// newOwned returns the watches of children, and the means of reconcile handlers.
func (s *server) newOwned() (*owned, controller.Children) {
	o := &owned{handlers: s.Handlers.Of(handler.Reconciles), known: map[schema.GroupVersionResource][2]bool{}}
	if len(o.handlers) == 0 {
		return o, controller.Children{}
	}
	client := s.client.Derive(func(opts *kube.Options) { opts.ManagedFields = true })
	store := childwatch.NewStore(s.Name, s.Stream.Shared.Mark)
	references := childwatch.NewReferences(func(owner, handler string) {
		s.each(func(c *controller.Controller) { c.WakeWatched(owner, handler) })
	})
	o.watches = childwatch.NewWatches(childwatch.Config{
		Store: store, Client: client, References: references, Plain: s.client, Stream: s.Stream, Label: s.Name, Log: s.Log,
		Wake: func(owner string, of kind.Info) {
			s.each(func(c *controller.Controller) { c.WakeOwned(owner, of) })
		},
		Listed: func(of kind.Info) { s.each(func(c *controller.Controller) { c.WakeOwners(of) }) },
		Observe: func(config *stream.Config) (func(stream.Event, func(stream.Event)), func()) {
			pulse, end := s.vitals.Follow(config, nil)
			return pulse.Deliver, end
		},
	})
	return o, controller.Children{
		Runner:     &reconcile.Runner{Objects: &apiclient.Objects{API: client, Known: s.found}, Store: store, Name: s.Name},
		Listed:     o.isListed,
		Conditions: s.hasConditions,
		References: references,
	}
}

// each calls do for all served resources.
func (s *server) each(do func(*controller.Controller)) {
	if served := s.served.Load(); served != nil {
		for _, c := range *served {
			do(c)
		}
	}
}

// isListed reports whether the children of a handler are listed.
func (o *owned) isListed(h *handler.Handler) bool {
	wanted := o.wanted.Load()
	return wanted != nil && o.watches.Complete((*wanted)[h])
}

// followChildren starts the missing watches of children, and ends those that must not run
// now. The caller must hold s.mu.
func (s *server) followChildren(work context.Context) {
	o := s.owned
	if o.watches == nil || s.ended {
		return
	}
	if !s.working() || s.paused.Load() {
		o.wanted.Store(nil)
		o.watches.Follow(work, nil)
		return
	}
	wanted := map[*handler.Handler][]childwatch.Watch{}
	var all []childwatch.Watch
	for _, h := range o.handlers {
		wanted[h] = s.childrenOf(h)
		all = append(all, wanted[h]...)
	}
	o.wanted.Store(&wanted)
	o.watches.Follow(work, all)
}

// childrenOf returns the watches that a handler needs. Kinds that the cluster does not
// have are omitted: their watches start when it does. The caller must hold s.mu.
func (s *server) childrenOf(h *handler.Handler) (all []childwatch.Watch) {
	add := func(of kind.Selector, w childwatch.Watch, anywhere bool) {
		for _, w.Info = range of.Select(s.cluster) {
			if !w.Info.Namespaced || anywhere {
				w.Namespace = ""
				all = append(all, w)
				continue
			}
			for w.Namespace = range s.namespaces {
				all = append(all, w)
			}
		}
	}
	for _, o := range h.Reconcile.Owned {
		add(o.Of, childwatch.Watch{}, o.Anywhere)
	}
	for _, of := range h.Reconcile.Watched {
		add(of, childwatch.Watch{Foreign: true}, false)
	}
	return all
}

// ownedNeeds returns the permissions for children.
func (s *server) ownedNeeds() (all []rbac.Need) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, h := range s.owned.handlers {
		for _, o := range h.Reconcile.Owned {
			for _, info := range o.Of.Select(s.cluster) {
				all = append(all, rbac.Children(info, h.ID))
			}
		}
		for _, of := range h.Reconcile.Watched {
			for _, info := range of.Select(s.cluster) {
				all = append(all, rbac.Watched(info, h.ID))
			}
		}
	}
	return all
}

// hasConditions reports whether the schema of a resource has status.conditions and
// status.observedGeneration. It reads the schema once per resource.
func (s *server) hasConditions(ctx context.Context, info kind.Info) (conditions, observed bool) {
	o := s.owned
	o.mu.Lock()
	known, ok := o.known[info.GVR()]
	o.mu.Unlock()
	if ok {
		return known[0], known[1]
	}
	found, err := s.paths.Has(ctx, info, []string{"status", "conditions"}, []string{"status", "observedGeneration"})
	if err != nil {
		s.Log.Debug("The schema of a resource cannot be read; its objects get no conditions now.", "resource", info.String(), "error", err)
		return false, false
	}
	known = [2]bool(slices.Clone(found))
	o.mu.Lock()
	defer o.mu.Unlock()
	o.known[info.GVR()] = known
	return known[0], known[1]
}
