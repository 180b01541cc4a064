package engine_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestCurrentOfADaemonReturnsACopy(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).Daemon("d", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			time.Sleep(10 * time.Second)
			_ = d.Current()
			diary.add("%s", d.Object.Spec.Field)
			<-ctx.Done()
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		if l := diary.all(); len(l) != 1 || l[0] != "a" {
			t.Errorf("Object after Current: %q", l)
		}
	})
}

func TestARemovedFinalizerIsRestoredWithGrowingDelays(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnDelete("d", func(context.Context, *gopf.Change[*Example]) error { return nil })
		var n atomic.Int32
		c.Fault(gopftest.Writes("kopfexamples").Where(func(r gopftest.Request) bool {
			return r.Verb == "patch" && strings.Contains(r.Header.Get("User-Agent"), " gopf/")
		}), gopftest.After(func(gopftest.Request) {
			if n.Add(1) < 500 {
				go c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"finalizers": nil}})
			}
		}))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		begun := time.Now()
		c.Create(t, example("x", "a"))
		for n.Load() < 500 && time.Since(begun) < time.Minute {
			time.Sleep(time.Millisecond)
		}
		if n.Load() > 100 {
			t.Error("the finalizer is restored without a delay")
		}
		synctest.Wait()
	})
}

func TestARelistDuringAHandlerKeepsItsRetryWithEventHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnEvent("ev", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		x.OnCreate("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("slow #%d", ch.Retry)
			time.Sleep(30 * time.Second)
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Minute, errors.New("later"))
			}
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		c.Fault(gopftest.Requests("watch", "kopfexamples").First(1), gopftest.Fail(410))
		c.CutStreams()
		time.Sleep(time.Hour)
		if n := len(diary.all()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

func TestALifecycleThatSelectsNothingDoesNotLoop(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var asked atomic.Int32
		op := gopf.New()
		op.Settings.Execution.Lifecycle = func(due []gopf.Due) []gopf.Due {
			if asked.Add(1) > 100000 {
				panic("asked 100000 times in no time")
			}
			return nil // not now
		}
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("c"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Second)
		if asked.Load() > 100 {
			t.Error("a hot loop")
		}
	})
}

// A handler that changes its object in every call must not starve the events of the object.
func TestAHandlerThatKeepsChangingItsObjectDoesNotStarveIndices(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		n := 0
		x.On(gopf.Create|gopf.Update, "touch", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if n++; n < 3000 {
				ch.Patch.Annotate("n", fmt.Sprint(n))
			}
			time.Sleep(time.Second)
			return nil
		})
		idx := gopf.Mirror(x)
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(30 * time.Minute)
		o, _ := idx.One(types.NamespacedName{Namespace: "default", Name: "x"})
		if o.GetAnnotations()["n"] == "" {
			t.Error("the index is stale after half an hour")
		}
	})
}

func TestAnEmptyNamespaceIsNotTheWholeCluster(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", (&calls{}).handler("c"))
		err := op.Run(t.Context(), gopf.Cluster(c.RESTConfig()), gopf.Log(quiet()), gopf.Namespaces(""))
		if err == nil || !strings.Contains(err.Error(), "empty name") {
			t.Errorf("got %v", err)
		}
	})
}

func TestEmptyMatchersAreDeclarationErrors(t *testing.T) {
	op := gopf.New()
	x := gopf.For[*Example](op, resource)
	x.WithLabel("a", gopf.Matcher{}).OnCreate("c", func(context.Context, *gopf.Change[*Example]) error { return nil })
	x.WithLabel("a", gopf.Matching(nil)).OnCreate("d", func(context.Context, *gopf.Change[*Example]) error { return nil }, gopf.MaxAttempts(-1), gopf.Timeout(-1))
	gopf.For[gopf.Object](op, resource).OnCreate("e", func(context.Context, *gopf.Change[gopf.Object]) error { return nil })
	op.Settings.Execution.Lifecycle = nil
	op.Settings.Persistence.Finalizer = ""
	if op.Err() == nil {
		t.Error("the declaration error is missing")
	}
}
func TestMalformedStateDoesNotBlockTheObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("c", diary.handler("c"))
		x.OnDelete("d", diary.handler("d"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		o := example("x", "a")
		o.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
		o.SetAnnotations(map[string]string{annotated: "oops"})
		c.Create(t, o)
		time.Sleep(time.Hour)
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Hour)
		_, ex := c.Lookup(t, resource, "default", "x")
		if ex {
			t.Error("the object was not handled")
		}
	})
}

func TestLargeIntegersKeepTheirValue(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Patch.Set("status.big", int64(9007199254740993))
			ch.SetResult(int64(9007199254740993))
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		t.Logf("%v", get(t, c, "x").Object["status"])
	})
}
func TestFieldHandlersMayBeRenamed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		mk := func(id string, opts ...gopf.ChangeOption) *gopf.Operator {
			op := gopf.New()
			gopf.For[*Example](op, resource).OnField(id, "spec.field", diary.failing(id, 1, time.Minute), opts...)
			return op
		}
		stop := gopftest.Start(t, mk("old"), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		stop()
		gopftest.Start(t, mk("new", gopf.Formerly("old")), c, gopf.Log(quiet()))
		time.Sleep(time.Hour)
	})
}
func TestARemovedIndexedResourceDoesNotBlockTheOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, resource, "kopf.dev/v1/others")
		var diary calls
		op := gopf.New()
		gopf.Mirror(op.Resource("kopf.dev/v1/others"))
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("c"))
		c.Fault(gopftest.Requests("watch", "others"), gopftest.Fail(403))
		c.Fault(gopftest.Requests("list", "others"), gopftest.Fail(403))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		c.Delete(t, "apiextensions.k8s.io/v1/customresourcedefinitions", "", "others.kopf.dev")
		time.Sleep(time.Hour)
		if len(diary.all()) == 0 {
			t.Error("the index barrier waits for a resource that no longer exists")
		}
	})
}
func TestFinalizersOfTimersOnBuiltInKindsAreLogged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := gopftest.NewCluster(t, "v1/pods")
		var log lines
		op := gopf.New()
		op.Resource("v1/pods").Timer("t", time.Hour, func(context.Context, *gopf.Tick[gopf.Unstructured]) error { return nil })
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		if !log.has("built-in kind") {
			t.Error("pods get finalizers, but the log does not mention it")
		}
	})
}
