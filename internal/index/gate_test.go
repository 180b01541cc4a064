package index

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func isOpen(g *Gate) bool {
	select {
	case <-g.Open():
		return true
	default:
		return false
	}
}

func TestTheGateOpensWhenAllSourcesAreSynced(t *testing.T) {
	steps := []struct {
		title   string
		do      func(g *Gate)
		waiting []string // none: it is open
	}{
		{"made", func(*Gate) {}, []string{"namespaces"}},
		{"expect a source", func(g *Gate) { g.Expect("pods in b") }, []string{"namespaces", "pods in b"}},
		{"expect another one", func(g *Gate) { g.Expect("pods in a") }, []string{"namespaces", "pods in a", "pods in b"}},
		{"sync their origin", func(g *Gate) { g.Synced("namespaces") }, []string{"pods in a", "pods in b"}},
		{"sync an unknown one", func(g *Gate) { g.Synced("pods in z") }, []string{"pods in a", "pods in b"}},
		{"sync one", func(g *Gate) { g.Synced("pods in a") }, []string{"pods in b"}},
		{"sync it again", func(g *Gate) { g.Synced("pods in a") }, []string{"pods in b"}},
		{"expect it again", func(g *Gate) { g.Expect("pods in a") }, []string{"pods in b"}},
		{"drop it and expect it again", func(g *Gate) { g.Drop("pods in a"); g.Expect("pods in a") }, []string{"pods in a", "pods in b"}},
		{"drop the unsynced one", func(g *Gate) { g.Drop("pods in b") }, []string{"pods in a"}},
		{"drop an unknown one", func(g *Gate) { g.Drop("pods in z") }, []string{"pods in a"}},
		{"drop the last one", func(g *Gate) { g.Drop("pods in a") }, nil},
		{"expect a late one", func(g *Gate) { g.Expect("pods in c") }, nil},
		{"sync it and drop it", func(g *Gate) { g.Synced("pods in c"); g.Drop("pods in c") }, nil},
	}
	g := NewGate("namespaces")
	for _, step := range steps {
		step.do(g)
		if diff := cmp.Diff(step.waiting, g.Waiting()); diff != "" {
			t.Errorf("%s: -want +got\n%s", step.title, diff)
		}
		if isOpen(g) != (step.waiting == nil) {
			t.Errorf("%s: open: %v", step.title, isOpen(g))
		}
	}
}

func TestDropReportsWhetherTheGateWaited(t *testing.T) {
	g := NewGate("resources", "pods", "nodes")
	g.Synced("nodes")
	for _, c := range []struct {
		source string
		want   bool
	}{{"pods", true}, {"pods", false}, {"nodes", false}, {"unknown", false}, {"resources", true}, {"resources", false}} {
		if got := g.Drop(c.source); got != c.want {
			t.Errorf("%s: got %v", c.source, got)
		}
	}
	if !isOpen(g) {
		t.Errorf("the gate waits for %q", g.Waiting())
	}
}

func TestAGateWithoutSourcesIsOpen(t *testing.T) {
	if g := NewGate(); !isOpen(g) || len(g.Waiting()) > 0 {
		t.Error("it is not open")
	}
}

func TestUnsyncedSourcesAreReportedByName(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := NewGate("pods", "nodes")
		var told [][]string
		var done sync.WaitGroup
		done.Go(func() {
			if err := g.Await(t.Context(), 10*time.Second, func(names []string) { told = append(told, names) }); err != nil {
				t.Errorf("got %v for an open gate", err)
			}
		})
		time.Sleep(15 * time.Second)
		g.Synced("nodes")
		time.Sleep(10 * time.Second)
		g.Synced("pods")
		done.Wait()
		if diff := cmp.Diff([][]string{{"nodes", "pods"}, {"pods"}}, told); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestWaitingAtTheGateEndsWithTheContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		why := errors.New("enough")
		ctx, cancel := context.WithTimeoutCause(t.Context(), time.Minute, why)
		defer cancel()
		told := 0
		err := NewGate("pods").Await(ctx, 20*time.Second, func([]string) { told++ })
		if !errors.Is(err, why) {
			t.Errorf("got %v, want %v", err, why)
		}
		if told < 2 {
			t.Errorf("tell was called %d times, want at least 2", told)
		}
	})
}

func TestTheGateOpensOnceUnderConcurrentUse(t *testing.T) {
	g := NewGate("discovery")
	names := []string{"a", "b", "c", "d"}
	var users sync.WaitGroup
	for range 20 {
		for i, name := range names {
			users.Go(func() {
				g.Expect(name)
				if !slices.IsSorted(g.Waiting()) {
					t.Error("the names are not sorted")
				}
				if i%2 == 0 {
					g.Synced(name)
				} else {
					g.Drop(name)
				}
			})
		}
	}
	users.Wait()
	g.Synced("discovery")
	if !isOpen(g) {
		t.Errorf("the gate waits for %q", g.Waiting())
	}
}

func TestAClosedGateWaitsForNewlyExpectedSources(t *testing.T) {
	t.Parallel()
	g := NewGate("resources", "namespaces")
	g.Expect("pods")
	g.Synced("pods")
	g.Synced("resources")
	g.Close("resources") // before it was open
	g.Expect("pods")
	g.Synced("namespaces")
	g.Synced("resources")
	if diff := cmp.Diff([]string{"pods"}, g.Waiting()); diff != "" {
		t.Error(diff)
	}
	g.Synced("pods")
	<-g.Open()
	g.Close("resources")
	g.Synced("resources")
	<-g.Open()
	g.Close("resources")
	g.Expect("pods")
	g.Synced("resources")
	select {
	case <-g.Open():
		t.Error("the gate is open although a source is missing")
	default:
	}
}
