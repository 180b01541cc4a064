package serving

import (
	"maps"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/kind"
)

// Cluster returns the resources of the last discovery.
func (s *Controllers) Cluster() []kind.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// NamespaceNames returns the sorted names of the served namespaces, with those that wait for
// [Controllers.Admit]. "" means all.
func (s *Controllers) NamespaceNames() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.namespaces))
}

// Problems returns sorted descriptions of the handlers that cannot be served.
func (s *Controllers) Problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.told.Kinds()))
}

// Gauges returns the values for the metrics of all served resources.
func (s *Controllers) Gauges() (all []metrics.ResourceGauges) {
	s.mu.Lock()
	controllers := slices.Collect(maps.Values(s.controllers))
	s.mu.Unlock()
	for _, c := range controllers {
		all = append(all, c.Gauges())
	}
	return all
}

// Uses returns how handlers use the served resources, sorted by resource.
func (s *Controllers) Uses() (uses []rbac.Use) {
	for _, c := range *s.served.Load() {
		uses = append(uses, c.Use())
	}
	slices.SortFunc(uses, func(a, b rbac.Use) int { return strings.Compare(a.Info.String(), b.Info.String()) })
	return uses
}

// Served returns the controllers of the served resources, in no order.
func (s *Controllers) Served() []*controller.Controller { return *s.served.Load() }

// Memos returns the memos of an object. nil means that the object is unknown.
func (s *Controllers) Memos(info kind.Info, uid string) *handler.Memos {
	for _, c := range *s.served.Load() {
		if c.Info().GVR() == info.GVR() {
			return c.Memos(uid)
		}
	}
	return nil
}

// Hurry ends the error backoff of all objects.
func (s *Controllers) Hurry() {
	for _, c := range *s.served.Load() {
		c.Hurry()
	}
}

// Wake calls delayed handlers of an object now. No ids means all handlers. Unknown
// objects are ignored.
func (s *Controllers) Wake(of kind.Selector, namespace, name string, ids []string) {
	s.eachServed(of, func(c *controller.Controller) { c.Wake(namespace, name, ids) })
}

// WakeOwner calls delayed handlers of the owner of an object in the namespace now. Owner
// references may be forged, so the uid must be that of an object in the same namespace or
// of a cluster-scoped one.
func (s *Controllers) WakeOwner(of kind.Selector, namespace, uid string) {
	s.eachServed(of, func(c *controller.Controller) { c.WakeOwner(namespace, uid) })
}

// WakeOwned queues a turn of the owner with the uid, because its child in the namespace
// has changed.
func (s *Controllers) WakeOwned(owner string, child kind.Info, namespace string) {
	for _, c := range *s.served.Load() {
		c.WakeOwned(owner, child, namespace)
	}
}

// WakeWatched queues a turn of the owner with the uid, because an object that its handler
// refers to has changed.
func (s *Controllers) WakeWatched(owner, handler string) {
	for _, c := range *s.served.Load() {
		c.WakeWatched(owner, handler)
	}
}

// WakeOwners queues turns of all owners of children of the kind, because these are listed
// now.
func (s *Controllers) WakeOwners(children kind.Info) {
	for _, c := range *s.served.Load() {
		c.WakeOwners(children)
	}
}

// eachServed calls do for the served resources that the selector selects.
func (s *Controllers) eachServed(of kind.Selector, do func(*controller.Controller)) {
	served := *s.served.Load()
	infos := make([]kind.Info, len(served))
	for i, c := range served {
		infos[i] = c.Info()
	}
	for _, info := range of.Select(infos) {
		for _, c := range served {
			if c.Info().GVR() == info.GVR() {
				do(c)
			}
		}
	}
}
