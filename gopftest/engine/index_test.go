package engine_test

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func byField(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
	if s.Object.Spec.Field == "" {
		return nil, nil
	}
	return map[string]string{s.Object.Spec.Field: s.Object.Name}, nil
}

func values(index *gopf.IndexOf[string, string], key string) []string {
	return slices.Sorted(index.Get(key))
}

func TestIndicesAreCompleteBeforeTheFirstHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		for i := range 50 {
			c.Create(t, example(fmt.Sprintf("x%02d", i), "a"))
		}
		c.Fault(gopftest.Requests("watch", "kopfexamples").First(3), gopftest.Fail(503)) // delays the list
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		index := gopf.Index(kex, "by-field", byField)
		kex.OnCreate("c", func(context.Context, *gopf.Change[*Example]) error {
			diary.add("%d", index.Count("a"))
			return nil
		})
		gopftest.Start(t, op, c)
		time.Sleep(time.Minute)
		got := diary.all()
		if len(got) != 50 {
			t.Fatalf("%d calls, want 50", len(got))
		}
		for _, n := range got {
			if n != "50" {
				t.Errorf("a handler saw an index of %s objects, want 50", n)
			}
		}
	})
}

func TestIndicesFollowTheirObjects(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		index := gopf.Index(gopf.For[*Example](op, resource), "by-field", byField)
		all := gopf.Mirror(gopf.For[*Example](op, resource))
		c.Create(t, example("x", "a"))
		c.Create(t, example("y", "a"))
		gopftest.Start(t, op, c)
		settle()
		if got := values(index, "a"); !slices.Equal(got, []string{"x", "y"}) {
			t.Errorf("initially: %q", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		if a, b := values(index, "a"), values(index, "b"); !slices.Equal(a, []string{"y"}) || !slices.Equal(b, []string{"x"}) {
			t.Errorf("after a change: %q %q", a, b)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": nil}})
		c.Delete(t, resource, "default", "y")
		settle()
		if index.Len() != 0 {
			t.Errorf("%d keys are left", index.Len())
		}
		if obj, ok := all.One(types.NamespacedName{Namespace: "default", Name: "x"}); !ok || obj.Name != "x" || all.Len() != 1 {
			t.Errorf("the mirror has %d objects, x: %v", all.Len(), ok)
		}
		if got := len(c.Writes("kopfexamples")); got != 0 {
			t.Errorf("%d writes of an operator that only indexes", got)
		}
	})
}

func TestADeletionMissedDuringABrokenWatchLeavesTheIndex(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		index := gopf.Index(gopf.For[*Example](op, resource), "by-field", byField)
		c.Create(t, example("x", "a"))
		c.Create(t, example("y", "a"))
		gopftest.Start(t, op, c)
		settle()
		f := c.Fault(gopftest.Requests("watch", "kopfexamples").From(1), gopftest.Fail(503))
		c.CutStreams()
		c.Delete(t, resource, "default", "x")
		c.Expire()
		time.Sleep(10 * time.Second)
		f.Stop()
		time.Sleep(time.Minute)
		if got := values(index, "a"); !slices.Equal(got, []string{"y"}) {
			t.Errorf("got %q", got)
		}
	})
}

func TestAnIndexedKindThatCannotBeListedIsLoggedAndBlocksOnlyTheStart(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		f := c.Fault(gopftest.Requests("", "kopfexamples").Where(func(r gopftest.Request) bool { return r.Verb == "list" || r.Verb == "watch" }), gopftest.Fail(403))
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		gopf.Index(kex, "by-field", byField)
		op.Resource("namespaces").WithLabel("x", gopf.Absent).OnEvent("ns", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
			diary.add("%s", e.Object.GetName())
			return nil
		})
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(30 * time.Second)
		if len(diary.all()) != 0 {
			t.Errorf("handlers were called before the indices were filled: %q", diary.all())
		}
		if !log.has("kopfexamples.v1.kopf.dev", "waiting") {
			t.Error("the log does not name the index that is waited for")
		}
		f.Stop()
		time.Sleep(time.Minute)
		if len(diary.all()) == 0 {
			t.Error("handlers were not called after the indices were filled")
		}
	})
}

func TestAPauseDoesNotInterruptIndexFunctions(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var slow atomic.Bool
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", diary.handler("create"))
		names := gopf.Index(x, "names", func(ctx context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			if slow.Load() {
				select {
				case <-ctx.Done():
					return nil, ctx.Err()
				case <-time.After(10 * time.Second):
				}
			}
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		}, gopf.ErrorsPermanent())
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		slow.Store(true)
		c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"finalizers": []any{"some.io/other"}}})
		settle()
		op.Pause("for a test")
		time.Sleep(time.Minute)
		synctest.Wait()
		if v, _ := names.One("x"); v != "a" {
			t.Errorf("the index has %q in the pause; want the value of the object", v)
		}
	})
}
