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

// Peering says how the operator takes turns with others.
type Peering struct {
	Standalone  bool // it does not
	Clusterwide bool // by a cluster-scoped object rather than by one in each namespace
	Mandatory   bool // it pauses until it has found the object
	Stealth     bool
	Name        string // of the object
	Identity    string // "" for one that is made up
	Priority    int
	Lifetime    time.Duration
}

// noPeering is who asks for a pause while there is nothing to meet others by.
const noPeering = "mandatory peering"

// meetPeers takes part in all peerings of what is served, until the context is
// done: then it takes leave of them.
func (s *server) meetPeers(ctx context.Context) {
	if s.Peering.Standalone {
		return
	}
	identity := sync.OnceValue(func() string { return s.identity(ctx) })
	client := s.client.Ungated().Reserved(forPeering)
	var members sync.WaitGroup
	defer members.Wait()
	leave := map[string]func(){}
	left := map[string]chan struct{}{} // by those who have been there before
	for n := 0; ; {
		places := s.peeringPlaces()
		if s.Peering.Mandatory && len(places) == 0 {
			s.Pause(noPeering, "there is no peering to take part in, although it is mandatory: install peering.yaml")
		}
		wanted := map[string]bool{}
		for _, place := range places {
			where := place.Info.String() + " " + place.String()
			wanted[where] = true
			if leave[where] != nil {
				continue
			}
			n++
			who := fmt.Sprintf("peering %s #%d", where, n) // its pauses end with it, and no others
			member := s.member(client, place, identity(), who)
			if member.Paused() {
				s.Pause(who, "the peering object was not seen yet")
			}
			taking, end := context.WithCancel(ctx)
			former, over := left[where], make(chan struct{})
			leave[where], left[where] = end, over
			members.Go(func() {
				defer close(over)
				if former != nil {
					<-former // it may still be taking our record away
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

// identity is under what the others know this operator. Replicas of which one is
// elected are one operator to them: otherwise all would pause because of each
// other.
func (s *server) identity(ctx context.Context) string {
	if s.Election.Enabled {
		return "replicas of " + s.leaseNamespace() + "/" + s.Election.Name
	}
	return identify(ctx, s.Peering.Identity)
}

// identify names this process, unless it has a name already.
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

// peeringPlaces are where the operator meets others now.
func (s *server) peeringPlaces() []peering.Place {
	s.mu.Lock()
	defer s.mu.Unlock()
	return peering.Places(peering.Resources(s.cluster, s.Peering.Clusterwide), slices.Sorted(maps.Keys(s.namespaces)))
}

// move tells that other resources or namespaces are served than before.
func (s *server) move() {
	if reviewer := s.vitals.reviewer.Load(); reviewer != nil {
		reviewer.Recheck()
	}
	select {
	case s.moved <- struct{}{}:
	default:
	}
}
