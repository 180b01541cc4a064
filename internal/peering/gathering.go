package peering

import (
	"context"
	"fmt"
	"sync"
)

// NoPeering is the requester of the pause while a mandatory peering does not exist.
const NoPeering = "mandatory peering"

// Gathering takes part in all peerings of an operator, as they come and go.
type Gathering struct {
	Config Config // of all members; the place, the identity and Toggle are filled in

	// Identify returns the identity of this operator. It is called once, before the
	// first member starts.
	Identify func(context.Context) string
	// Places returns the current peerings. Moved is signaled when they may have changed.
	Places func() []Place
	Moved  <-chan struct{}

	// Pause stops the work of the operator until Resume is called with the same who.
	Pause  func(who, why string)
	Resume func(who string)
}

// Run takes part in the peerings. When the context is done, it removes the records of
// this operator and returns.
func (g *Gathering) Run(ctx context.Context) {
	identity := sync.OnceValue(func() string { return g.Identify(ctx) })
	var members sync.WaitGroup
	defer members.Wait()
	leave := map[string]func(){}
	left := map[string]chan struct{}{} // closed when the previous member of the place has ended
	for n := 0; ; {
		places := g.Places()
		if g.Config.Mandatory && len(places) == 0 {
			g.Pause(NoPeering, "the peering is mandatory, but the cluster has no peering resource; apply peering.yaml")
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
			member := g.member(place, identity(), who)
			if member.Paused() {
				g.Pause(who, "the peering object was not read yet")
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
				g.Resume(who)
			})
		}
		if len(places) > 0 {
			g.Resume(NoPeering)
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
		case <-g.Moved:
		}
	}
}

func (g *Gathering) member(place Place, identity, who string) *Member {
	c := g.Config
	c.Place, c.Identity = place, identity
	c.Toggle = func(paused bool, why string) {
		if paused {
			g.Pause(who, why)
		} else {
			g.Resume(who)
		}
	}
	return New(c)
}
