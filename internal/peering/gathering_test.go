package peering

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/test/fakeobject"
	"gopf.dev/gopf/kind"
)

var formerKind = kind.Info{Group: "zalando.org", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true}

// gathered is an operator under test that takes part in peerings.
type gathered struct {
	Gathering
	log   *fakeobject.Log
	moved chan struct{}
	stop  func() // and waits for it

	mu     sync.Mutex
	places []Place
	pauses map[string]string
	served map[string]bool
	skips  []string
}

// gather starts an operator with a mandatory peering that serves namespaces of the pattern
// team-*, and others that its user has named.
func gather(t *testing.T, s http.RoundTripper, places ...Place) *gathered {
	t.Helper()
	g := &gathered{log: &fakeobject.Log{Detail: "namespace"}, moved: make(chan struct{}, 1), places: places, pauses: map[string]string{}, served: map[string]bool{}}
	c := DefaultConfig(fakeobject.Client(t, s), Place{})
	c.Mandatory, c.Log = true, slog.New(g.log)
	g.Gathering = Gathering{
		Config: c, Moved: g.moved,
		Identify: func(context.Context) string { return "me" },
		Places:   func() []Place { g.mu.Lock(); defer g.mu.Unlock(); return slices.Clone(g.places) },
		Pause:    func(who, why string) { g.mu.Lock(); defer g.mu.Unlock(); g.pauses[who] = why },
		Resume:   func(who string) { g.mu.Lock(); defer g.mu.Unlock(); delete(g.pauses, who) },
		Alone:    func(namespace string) bool { return strings.HasPrefix(namespace, "team-") },
		Admit:    func(namespace string, served bool) { g.mu.Lock(); defer g.mu.Unlock(); g.served[namespace] = served },
		Skip:     func(namespace string) { g.mu.Lock(); defer g.mu.Unlock(); g.skips = append(g.skips, namespace) },
	}
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { g.Run(ctx) })
	g.stop = func() { cancel(); done.Wait() }
	t.Cleanup(g.stop)
	return g
}

// move changes the places.
func (g *gathered) move(places ...Place) {
	g.mu.Lock()
	g.places = places
	g.mu.Unlock()
	g.moved <- struct{}{}
}

// expect waits, and compares the served namespaces of the pattern, and whether the operator is
// paused.
func (g *gathered) expect(t *testing.T, when string, paused bool, served ...string) {
	t.Helper()
	time.Sleep(10 * time.Second)
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	var got []string
	for namespace, is := range g.served {
		if is {
			got = append(got, namespace)
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, served) {
		t.Errorf("%s: served: got %q, want %q", when, got, served)
	}
	if (len(g.pauses) > 0) != paused {
		t.Errorf("%s: got the pauses %v", when, g.pauses)
	}
}

// skipped returns the namespaces that were skipped so far.
func (g *gathered) skipped() []string {
	g.mu.Lock()
	defer g.mu.Unlock()
	return slices.Clone(g.skips)
}

func team(n int) Place { return Place{namespacedKind, fmt.Sprintf("team-%d", n)} }

func TestNamespacesOfAPatternWaitForTheirPeeringObjectsAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		g := gather(t, s)
		g.expect(t, "no namespaces", true)
		g.move(team(1), team(2))
		g.expect(t, "no objects", true)
		s.create(team(1), "default", nil)
		g.expect(t, "one object", false, "team-1")
		g.move(team(1), team(2), team(3))
		g.expect(t, "another namespace", false, "team-1")
		s.create(team(2), "default", map[string]any{"boss": record(1, 15, 0)})
		g.expect(t, "another object, with a conflict", true, "team-1", "team-2")
		g.expect(t, "without", false, "team-1", "team-2")
		g.move(team(2), team(3))
		g.expect(t, "a namespace is gone", false, "team-2")
		g.move(team(3))
		g.expect(t, "all others are gone", true)
		g.move(team(1), team(3))
		g.expect(t, "it is back", false, "team-1")
	})
}

func TestANamedNamespaceWithoutAPeeringObjectPausesAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		named := Place{namespacedKind, "named"}
		g := gather(t, s, team(1), named)
		s.create(team(1), "default", nil)
		g.expect(t, "without the object of the named one", true, "team-1")
		s.create(named, "default", nil)
		g.expect(t, "with both objects", false, "team-1")
	})
}

// An old installation has another peering resource. Both objects are needed.
func TestANamespaceWithTwoPeeringsWaitsForBoth(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		first, second := team(1), Place{formerKind, "team-1"}
		s.create(first, "default", nil)
		g := gather(t, s, first, second)
		g.expect(t, "one of two objects", false)
		s.create(second, "default", nil)
		g.expect(t, "both", false, "team-1")
		g.move(first)
		g.expect(t, "one resource is gone", false, "team-1")
		g.move()
		g.expect(t, "both are gone", true)
	})
}

func TestMissingPeeringObjectsAreReportedOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		s.create(team(1), "default", nil)
		forbid := func(req *http.Request) (*http.Response, error) {
			if strings.Contains(req.URL.Path, "/team-3/") {
				return fakeobject.Refuse(req, http.StatusForbidden), nil
			}
			return s.RoundTrip(req)
		}
		g := gather(t, tripper(forbid), team(1), team(2), team(3))
		time.Sleep(4 * time.Second)
		synctest.Wait()
		if got, want := g.skipped(), []string{"team-2"}; !slices.Equal(got, want) {
			t.Errorf("after 4 seconds: got %q, want %q", got, want)
		}
		time.Sleep(time.Hour)
		g.expect(t, "an hour later", false, "team-1")
		if got, want := g.skipped(), []string{"team-2", "team-3"}; !slices.Equal(got, want) {
			t.Errorf("an hour later: got %q, want %q", got, want)
		}
		var lines []string
		for _, line := range g.log.Take("WARN") {
			if strings.Contains(line, "not served") {
				lines = append(lines, line)
			}
		}
		if len(lines) != 2 || !strings.Contains(lines[0], "has no peering object") || !strings.Contains(lines[0], " team-2") ||
			!strings.Contains(lines[1], "may not list") || !strings.Contains(lines[1], " team-3") {
			t.Errorf("got %q", lines)
		}
	})
}

// A tenant may create and delete namespaces.
func TestPlacesAreForgottenAfterTheirMembersHaveLeft(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer()
		g := gather(t, s, team(0))
		for i := range 100 {
			g.move(team(0), team(i+1))
			time.Sleep(10 * time.Second)
		}
		g.stop()
		if len(g.leaving) > 1 || len(g.seats) > 2 {
			t.Errorf("%d members and %d namespaces are kept", len(g.leaving), len(g.seats))
		}
	})
}

type tripper func(*http.Request) (*http.Response, error)

func (f tripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }
