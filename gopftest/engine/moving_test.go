package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The resources and namespaces of the cluster change while operators pause, stand by,
// and stop.

const (
	gadgets     = "moving.dev/v1/gadgets"
	definitions = "apiextensions.k8s.io/v1/customresourcedefinitions"
)

func gadget(name, namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "moving.dev/v1", "kind": "Gadget",
		"metadata": map[string]any{"name": name, "namespace": namespace},
		"spec":     map[string]any{"field": "a"},
	}}
}

var gadgetKind = gopftest.Kind{Group: "moving.dev", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true}

func TestIndicesAreCompleteAfterAPauseAtStartup(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		for i := range 10 {
			c.Create(t, gadget(fmt.Sprint("g", i), "default"))
		}
		c.Create(t, example("x", "a"))
		c.Fault(gopftest.Requests("", "gadgets").From(1), gopftest.Hold(5*time.Second)) // delays the list
		var diary calls
		op := gopf.New()
		index := gopf.Index(gopf.For[*Example](op, gadgets), "by-field", byField)
		gopf.For[*Example](op, resource).OnCreate("c", func(context.Context, *gopf.Change[*Example]) error {
			diary.add("%d", index.Count("a"))
			return nil
		})
		op.Pause("for a test")
		gopftest.Start(t, op, c)
		time.Sleep(time.Minute)
		op.Unpause()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); !slices.Equal(got, []string{"10"}) {
			t.Errorf("the handler saw %q, want all 10 objects", got)
		}
	})
}

func TestNamespacesDeletedDuringAPauseAreForgotten(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.CreateNamespace(t, "app-one")
		c.CreateNamespace(t, "app-two")
		c.Create(t, gadget("g", "app-one"))
		c.Create(t, gadget("g", "app-two"))
		op := gopf.New()
		index := gopf.Index(gopf.For[*Example](op, gadgets), "by-field", byField)
		gopftest.Start(t, op, c, gopf.Namespaces("app-*"))
		settle()
		if n := index.Count("a"); n != 2 {
			t.Fatalf("%d objects in the index, want 2", n)
		}
		op.Pause("for a test")
		settle()
		c.Delete(t, gadgets, "app-one", "g")
		c.Delete(t, "v1/namespaces", "", "app-one")
		time.Sleep(time.Minute)
		op.Unpause()
		time.Sleep(time.Minute)
		synctest.Wait()
		if n := index.Count("a"); n != 1 {
			t.Errorf("%d objects in the index after the pause, want the one that is left", n)
		}
	})
}

func TestATurnThatOutlivesItsNamespaceStartsNoDaemon(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.CreateNamespace(t, "app-one")
		var calls, running atomic.Int32
		op := gopf.New()
		x := gopf.For[*Example](op, gadgets)
		x.OnEvent("slow", func(context.Context, *gopf.WatchEvent[*Example]) error {
			calls.Add(1)
			time.Sleep(10 * time.Second)
			return nil
		})
		x.Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
			running.Add(1)
			defer running.Add(-1)
			<-ctx.Done()
			return nil
		}, gopf.Optional())
		gopftest.Start(t, op, c, gopf.Namespaces("app-*"))
		settle()
		c.Create(t, gadget("g", "app-one"))
		time.Sleep(time.Second)
		c.Delete(t, gadgets, "app-one", "g")
		c.Delete(t, "v1/namespaces", "", "app-one")
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls.Load() == 0 || running.Load() != 0 {
			t.Errorf("%d events were handled, and %d daemons run in a namespace that is gone", calls.Load(), running.Load())
		}
	})
}

func TestAnIndexFunctionThatOutlivesItsNamespaceLeavesNoEntry(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.CreateNamespace(t, "app-one")
		var calls atomic.Int32
		op := gopf.New()
		x := gopf.For[*Example](op, gadgets)
		index := gopf.Index(x, "by-field", func(ctx context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			calls.Add(1)
			time.Sleep(10 * time.Second)
			return byField(ctx, s)
		})
		gopftest.Start(t, op, c, gopf.Namespaces("app-*"))
		settle()
		c.Create(t, gadget("g", "app-one"))
		time.Sleep(time.Second)
		c.Delete(t, gadgets, "app-one", "g")
		c.Delete(t, "v1/namespaces", "", "app-one")
		time.Sleep(time.Minute)
		synctest.Wait()
		if calls.Load() == 0 || index.Count("a") != 0 {
			t.Errorf("the function was called %d times, and the index has %d objects of a namespace that is gone", calls.Load(), index.Count("a"))
		}
	})
}

func TestTheIndexBarrierIgnoresResourcesRemovedDuringAPause(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.Fault(gopftest.Requests("", "gadgets").From(1), gopftest.Hang()) // keeps the index barrier closed
		var diary calls
		op := gopf.New()
		gopf.Index(gopf.For[*Example](op, gadgets), "by-field", byField)
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("create"))
		gopftest.Start(t, op, c)
		settle()
		op.Pause("for a test")
		settle()
		c.Delete(t, definitions, "", "gadgets.moving.dev")
		time.Sleep(2 * time.Minute)
		op.Unpause()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); !slices.Equal(got, []string{"create create a"}) {
			t.Errorf("got %q, want that nobody waits for a resource that is gone", got)
		}
	})
}

func TestAChangedResourceIsServedAnewByOneActorAndStaysIndexed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.Create(t, gadget("g", "default"))
		var running, most atomic.Int32
		var daemons, mostDaemons atomic.Int32
		op := gopf.New()
		x := gopf.For[*Example](op, gadgets)
		index := gopf.Index(x, "by-field", byField)
		slow := func(context.Context, *gopf.Change[*Example]) error {
			most.Store(max(most.Load(), running.Add(1)))
			defer running.Add(-1)
			time.Sleep(4 * time.Second) // longer than its grace period
			return nil
		}
		x.OnCreate("create", slow)
		x.OnUpdate("update", slow)
		x.Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
			mostDaemons.Store(max(mostDaemons.Load(), daemons.Add(1)))
			defer daemons.Add(-1)
			<-ctx.Done()
			time.Sleep(time.Second)
			return nil
		})
		gopftest.Start(t, op, c)
		time.Sleep(10 * time.Second)
		c.Patch(t, gadgets, "default", "g", map[string]any{"spec": map[string]any{"items": []any{"b"}}})
		time.Sleep(time.Second)
		crd := c.Get(t, definitions, "", "gadgets.moving.dev")
		versions, _, _ := unstructured.NestedSlice(crd.Object, "spec", "versions")
		versions[0].(map[string]any)["subresources"] = map[string]any{"status": map[string]any{}}
		_ = unstructured.SetNestedSlice(crd.Object, versions, "spec", "versions")
		c.Update(t, crd)
		time.Sleep(5 * time.Minute)
		synctest.Wait()
		if n := most.Load(); n != 1 {
			t.Errorf("%d handlers of one object ran at the same time", n)
		}
		if n, m := daemons.Load(), mostDaemons.Load(); n != 1 || m != 1 {
			t.Errorf("%d daemons run now, and %d did at the same time; want 1", n, m)
		}
		if n := index.Count("a"); n != 1 {
			t.Errorf("%d objects in the index, want 1", n)
		}
	})
}

func TestAResourceIsServedAgainDespiteAHandlerThatNeverEnds(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		c.Create(t, gadget("stuck", "default"))
		release := make(chan struct{})
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, gadgets).OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s", ch.Object.GetName())
			if ch.Object.GetName() == "stuck" {
				<-release
			}
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Delete(t, definitions, "", "gadgets.moving.dev")
		time.Sleep(30 * time.Second)
		c.Define(t, gadgetKind)
		time.Sleep(2 * time.Minute)
		c.Create(t, gadget("other", "default"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); !slices.Equal(got, []string{"stuck", "other"}) {
			t.Errorf("got %q", got)
		}
		close(release)
	})
}

func TestPauseAndStopAtTheSameTime(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Create(t, example("x", "a"))
		for i := range 20 {
			op := gopf.New()
			x := gopf.For[*Example](op, resource)
			x.OnCreate("c", func(context.Context, *gopf.Change[*Example]) error { return nil })
			x.Daemon("d", func(ctx context.Context, _ *gopf.Daemon[*Example]) error { <-ctx.Done(); return nil })
			stop := gopftest.Start(t, op, c, gopf.Log(quiet()))
			settle()
			done := make(chan struct{})
			go func() {
				defer close(done)
				for range 50 {
					op.Pause("for a test")
					op.Unpause()
					if i%2 == 0 {
						time.Sleep(time.Millisecond)
					}
				}
			}()
			stop()
			<-done
		}
	})
}

// When a definition is deleted, discovery reports that its objects cannot be changed. They
// can, and must be changed: their finalizers block the deletion of the definition.
func TestObjectsAreReleasedWhenTheirDefinitionIsDeleted(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, "gadgets")
		x.OnCreate("make", diary.handler("make"))
		x.OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Minute, errors.New("it takes its time"))
			}
			diary.add("drop %s", ch.Object.Name)
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, gadget("g", "default"))
		time.Sleep(time.Minute)
		c.Delete(t, definitions, "", "gadgets.moving.dev")
		time.Sleep(2 * time.Minute)
		if got, want := diary.all(), []string{"make create a", "drop g"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if _, there := c.Lookup(t, definitions, "", "gadgets.moving.dev"); there {
			t.Error("the definition still exists")
		}
		// It is created again with another version, and is served immediately.
		second := gadgetKind
		second.Version = "v2"
		c.Define(t, second)
		again := gadget("g", "default")
		again.SetAPIVersion("moving.dev/v2")
		c.Create(t, again)
		time.Sleep(2 * time.Second)
		if got := diary.all(); len(got) != 3 || got[2] != "make create a" {
			t.Errorf("after the definition was created again: %q", got)
		}
	})
}

func TestADefinitionReplacedByAnotherVersionIsNotAmbiguous(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gadgetKind)
		var diary calls
		var log lines
		op := gopf.New()
		gopf.For[*Example](op, "gadgets").OnCreate("make", diary.handler("make"))
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		c.Delete(t, definitions, "", "gadgets.moving.dev")
		second := gadgetKind
		second.Version = "v2"
		c.Define(t, second)
		again := gadget("g", "default")
		again.SetAPIVersion("moving.dev/v2")
		c.Create(t, again)
		time.Sleep(3 * time.Second)
		if got := diary.all(); !slices.Equal(got, []string{"make create a"}) {
			t.Errorf("got %q", got)
		}
		if log.has("is ambiguous") {
			t.Error("the resource was ambiguous for a while")
		}
	})
}
