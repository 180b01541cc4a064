package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/peering"
)

// Peering configures the coordination with other operators through peering objects.
type Peering struct {
	Standalone  bool   // no peering
	Clusterwide bool   // one cluster-scoped object instead of one in each namespace
	Mandatory   bool   // pause until the object exists
	Stealth     bool   // do not log successful renewals
	Name        string // of the object
	Identity    string // "" means a generated one
	Priority    int
	Lifetime    time.Duration // of our record without renewal
}

// meetPeers takes part in all peerings of the served scope. When the context is done,
// it removes the records of this operator and returns.
func (s *server) meetPeers(ctx context.Context) {
	if s.Peering.Standalone {
		return
	}
	config := peering.Config{
		Client: s.client.Ungated().Reserved(forPeering), Name: s.Peering.Name,
		Priority: s.Peering.Priority, Lifetime: s.Peering.Lifetime,
		Mandatory: s.Peering.Mandatory, Stealth: s.Peering.Stealth,
		Stream: s.Stream, Log: s.Log,
	}
	g := peering.Gathering{
		Config: config, Identify: s.identity, Places: s.peeringPlaces, Moved: s.moved, Pause: s.Pause, Resume: s.Resume,
	}
	g.Run(ctx)
}

// identity returns the identity of this operator in peerings. Replicas with leader
// election share one identity, otherwise they would pause each other.
func (s *server) identity(ctx context.Context) string {
	if s.Election.Enabled {
		return "replicas of " + s.leaseNamespace() + "/" + s.Election.Name
	}
	return identify(ctx, s.Peering.Identity)
}

// identify returns the name, or a generated identity of this process if it is empty.
func identify(ctx context.Context, name string) string {
	if name != "" {
		return name
	}
	return peering.ThisSystem().Identity(ctx, time.Now())
}

// peeringPlaces returns the peerings of the resources and namespaces served now.
func (s *server) peeringPlaces() []peering.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return peering.Places(peering.Resources(s.cluster, s.Peering.Clusterwide), slices.Sorted(maps.Keys(s.namespaces)))
}

// move signals a change of the served resources or namespaces: permissions are checked
// again, and meetPeers looks for new peerings.
func (s *server) move() {
	s.vitals.Recheck()
	select {
	case s.moved <- struct{}{}:
	default:
	}
}
