package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/peering"
)

// Peering configures the coordination with other operators through peering objects.
type Peering struct {
	Standalone  bool   // no peering
	Clusterwide bool   // one cluster-scoped object instead of one in each namespace
	Mandatory   bool   // pause until the object exists; see awaitsPeering
	Stealth     bool   // do not log successful renewals
	Name        string // of the object
	Identity    string // "" means a generated one
	Priority    int
	Lifetime    time.Duration // of our record without renewal
}

// meetPeers takes part in all peerings of the served scope. When the context is done,
// it removes the records of this operator and returns.
func (op *operator) meetPeers(ctx, work context.Context) {
	if op.Peering.Standalone {
		return
	}
	config := peering.Config{
		Client: op.client.Ungated().Reserved(forPeering), Name: op.Peering.Name,
		Priority: op.Peering.Priority, Lifetime: op.Peering.Lifetime,
		Mandatory: op.Peering.Mandatory, Stealth: op.Peering.Stealth,
		Stream: op.Stream, Log: op.Log,
	}
	g := peering.Gathering{
		Config: config, Identify: op.identity, Places: op.peeringPlaces, Moved: op.moved, Pause: op.Pause, Resume: op.Resume,
		Alone: op.awaitsPeering, Skip: op.controllers.Skip,
		Admit: func(namespace string, served bool) { op.controllers.Admit(work, namespace, served) },
	}
	g.Run(ctx)
}

// awaitsPeering reports whether a namespace is not served before its peering object is seen,
// while others may be. This is so for mandatory peerings in namespaces that match a pattern:
// a tenant who creates such a namespace, without a peering object, must not pause the operator. The
// namespaces that the user has named pause it, as in Kopf.
func (op *operator) awaitsPeering(namespace string) bool {
	p := op.Peering
	return p.Mandatory && !p.Standalone && !p.Clusterwide && len(op.Namespaces) > 0 && !op.Namespaces.Names(namespace)
}

// identity returns the identity of this operator in peerings. Replicas with leader
// election share one identity, otherwise they would pause each other.
func (op *operator) identity(ctx context.Context) string {
	if op.Election.Enabled {
		return "replicas of " + op.leaseNamespace() + "/" + op.Election.Name
	}
	return identify(ctx, op.Peering.Identity)
}

// identify returns the name, or a generated identity of this process if it is empty.
func identify(ctx context.Context, name string) string {
	if name != "" {
		return name
	}
	return peering.ThisSystem().Identity(ctx, time.Now())
}

// peeringPlaces returns the peerings of the resources and namespaces served now.
func (op *operator) peeringPlaces() []peering.Place {
	return peering.Places(peering.Resources(op.controllers.Cluster(), op.Peering.Clusterwide), op.controllers.NamespaceNames())
}
