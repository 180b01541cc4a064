package peering

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
)

// NoPeering is the requester of the pause while a mandatory peering does not exist.
const NoPeering = "mandatory peering"

// Gathering takes part in all peerings of an operator, as they come and go.
type Gathering struct {
	Config Config // of all members; the place, the identity, Toggle and Join are filled in

	// Identify returns the identity of this operator. It is called once, before the
	// first member starts.
	Identify func(context.Context) string
	// Places returns the current peerings. Moved is signaled when they may have changed.
	Places func() []Place
	Moved  <-chan struct{}

	// Pause stops the work of the operator until Resume is called with the same who.
	Pause  func(who, why string)
	Resume func(who string)

	// Alone reports whether a mandatory peering object that was not seen in the namespace
	// holds back only this namespace. Otherwise it pauses the operator. Until one object is
	// seen anywhere, the operator is paused in either case.
	Alone func(namespace string) bool
	// Admit says whether such a namespace may be served now. At first it may not. Skip is
	// called when its object does not exist or may not be read. They are called one at a
	// time and must not wait for the effects.
	Admit func(namespace string, served bool)
	Skip  func(namespace string)

	// leaving has the last members of places that may still be removing our records. It
	// belongs to the goroutine of Run.
	leaving map[string]*attendee

	mu    sync.Mutex
	seats map[string]map[string]bool // by namespace and who: false for members that hold back their namespaces
	seen  int                        // the number of members with true
}

// attendee is a member of a gathering.
type attendee struct {
	*Member
	who   string          // unique, so Resume ends only the pause of this member
	leave func()          // ends the member without waiting
	left  <-chan struct{} // closed when it has ended
}

// Run takes part in the peerings. When the context is done, it removes the records of
// this operator and returns.
func (g *Gathering) Run(ctx context.Context) {
	identity := sync.OnceValue(func() string { return g.Identify(ctx) })
	g.leaving, g.seats = map[string]*attendee{}, map[string]map[string]bool{}
	var members sync.WaitGroup
	defer members.Wait()
	present := map[string]*attendee{} // by place
	for n := 0; ; {
		wanted := map[string]bool{}
		var starts []func()
		for _, place := range g.Places() {
			where := place.Info.String() + " " + place.String()
			wanted[where] = true
			if present[where] != nil {
				continue
			}
			n++
			taking, end := context.WithCancel(ctx)
			left := make(chan struct{})
			a := &attendee{who: fmt.Sprintf("peering %s #%d", where, n), leave: end, left: left}
			a.Member = g.member(place, identity(), a.who)
			former := g.leaving[where]
			present[where] = a
			g.seat(a)
			starts = append(starts, func() {
				members.Go(func() {
					defer close(left)
					if former != nil {
						<-former.left // it may still be removing our record
					}
					a.Run(taking)
					g.Resume(a.who)
				})
			})
		}
		for _, start := range starts { // after all have a seat: a namespace may have two members
			start()
		}
		for where, a := range present {
			if !wanted[where] {
				a.leave()
				g.vacate(a)
				delete(present, where)
				g.leaving[where] = a
			}
		}
		maps.DeleteFunc(g.leaving, func(where string, a *attendee) bool { return present[where] != nil || a.hasLeft() })
		g.requirePeering()
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
	if g.isAlone(place.Namespace) {
		c.Join = func(found bool) { g.join(place.Namespace, who, found) }
	}
	return New(c)
}

// isAlone reports whether a missing object holds back only the namespace.
func (g *Gathering) isAlone(namespace string) bool {
	return g.Config.Mandatory && namespace != "" && g.Alone(namespace)
}

func (a *attendee) hasLeft() bool {
	select {
	case <-a.left:
		return true
	default:
		return false
	}
}

// seat adds a member that has not started yet. It pauses the operator, or withholds the
// namespace, if the member must be waited for.
func (g *Gathering) seat(a *attendee) {
	if a.Paused() {
		g.Pause(a.who, "the peering object was not read yet")
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	namespace := a.Place.Namespace
	if g.seats[namespace] == nil {
		g.seats[namespace] = map[string]bool{}
	}
	seen := a.Join == nil // it waits by its own pause, or it does not wait
	g.seats[namespace][a.who] = seen
	if seen {
		g.seen++
	}
	g.admit(namespace)
}

// vacate removes a member.
func (g *Gathering) vacate(a *attendee) {
	g.mu.Lock()
	defer g.mu.Unlock()
	namespace := a.Place.Namespace
	if g.seats[namespace][a.who] {
		g.seen--
	}
	if delete(g.seats[namespace], a.who); len(g.seats[namespace]) == 0 {
		delete(g.seats, namespace)
	}
	g.admit(namespace)
}

// join notes whether a member has found its peering object. Members that were removed are
// ignored.
func (g *Gathering) join(namespace, who string, found bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	seen, seated := g.seats[namespace][who]
	switch {
	case !seated || seen:
	case !found:
		g.Skip(namespace)
	default:
		g.seats[namespace][who] = true
		g.seen++
		g.admit(namespace)
		g.Resume(NoPeering)
	}
}

// admit serves a namespace if all its members have seen their objects. The caller must hold
// g.mu.
func (g *Gathering) admit(namespace string) {
	if !g.isAlone(namespace) {
		return
	}
	members := g.seats[namespace]
	waiting := slices.Contains(slices.Collect(maps.Values(members)), false)
	g.Admit(namespace, len(members) > 0 && !waiting)
}

// requirePeering pauses the operator while a mandatory peering was not found anywhere.
func (g *Gathering) requirePeering() {
	g.mu.Lock()
	defer g.mu.Unlock()
	switch {
	case !g.Config.Mandatory || g.seen > 0:
		g.Resume(NoPeering)
	case len(g.seats) == 0:
		g.Pause(NoPeering, "the peering is mandatory, but the cluster has no peering resource; apply peering.yaml")
	default:
		g.Pause(NoPeering, "the peering is mandatory, but no peering object was found in any served namespace yet; apply peering.yaml")
	}
}
