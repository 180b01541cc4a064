package engine

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
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

// noPeering is the requester of the pause while a mandatory peering does not exist.
const noPeering = "mandatory peering"

// meetPeers takes part in all peerings of the served scope. When the context is done,
// it removes the records of this operator and returns.
func (s *server) meetPeers(ctx context.Context) {
	if s.Peering.Standalone {
		return
	}
	identity := sync.OnceValue(func() string { return s.identity(ctx) })
	client := s.client.Ungated().Reserved(forPeering)
	var members sync.WaitGroup
	defer members.Wait()
	leave := map[string]func(){}
	left := map[string]chan struct{}{} // closed when the previous member of the place has ended
	for n := 0; ; {
		places := s.peeringPlaces()
		if s.Peering.Mandatory && len(places) == 0 {
			s.Pause(noPeering, "the peering is mandatory, but the cluster has no peering resource; apply peering.yaml")
		}
		wanted := map[string]bool{}
		for _, place := range places {
			where := place.Info.String() + " " + place.String()
			wanted[where] = true
			if leave[where] != nil {
				continue
			}
			n++
			who := fmt.Sprintf("peering %s #%d", where, n) // unique, so Resume ends only the pause of this member
			member := s.member(client, place, identity(), who)
			if member.Paused() {
				s.Pause(who, "the peering object was not read yet")
			}
			taking, end := context.WithCancel(ctx)
			former, over := left[where], make(chan struct{})
			leave[where], left[where] = end, over
			members.Go(func() {
				defer close(over)
				if former != nil {
					<-former // it may still be removing our record
				}
				member.Run(taking)
				s.Resume(who)
			})
		}
		if len(places) > 0 {
			s.Resume(noPeering)
		}
		for where, end := range leave {
			if !wanted[where] {
				end()
				delete(leave, where)
			}
		}
		select {
		case <-ctx.Done():
			return
		case <-s.moved:
		}
	}
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

func (s *server) member(client *kube.Client, place peering.Place, identity, who string) *peering.Member {
	return peering.New(peering.Config{
		Client: client, Place: place, Name: s.Peering.Name, Identity: identity,
		Priority: s.Peering.Priority, Lifetime: s.Peering.Lifetime,
		Mandatory: s.Peering.Mandatory, Stealth: s.Peering.Stealth,
		Toggle: func(paused bool, why string) {
			if paused {
				s.Pause(who, why)
			} else {
				s.Resume(who)
			}
		},
		Stream: s.Stream, Log: s.Log,
	})
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
