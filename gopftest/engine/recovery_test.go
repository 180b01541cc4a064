package engine_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/storage"
)

func TestARelistWhileAHandlerRunsDoesNotLoseItsRetry(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
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
		c.Expire()
		f := c.Fault(gopftest.Requests("watch", "kopfexamples").First(1), gopftest.Fail(410))
		c.CutStreams()
		time.Sleep(10 * time.Second)
		f.Stop()
		time.Sleep(time.Hour)
		if n := len(diary.all()); n != 2 {
			t.Errorf("%d calls, want 2", n)
		}
	})
}

func TestAValueThatJSONCannotEncodeDoesNotBlockTheDeletion(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("ratio", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("create")
			ch.Patch.Set("status.ratio", math.NaN())
			return nil
		})
		x.OnDelete("del", diary.handler("del"))
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Hour)
		_, exists := c.Lookup(t, resource, "default", "x")
		if exists {
			t.Error("the object was not deleted")
		}
	})
}

func TestTheOperatorStopsAfterAResourceIsRemovedDuringAHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("slow", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			<-ctx.Done()
			return nil
		})
		stop := gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Delete(t, "apiextensions.k8s.io/v1/customresourcedefinitions", "", "kopfexamples.kopf.dev")
		time.Sleep(time.Minute)
		stop()
	})
}

func TestAResourceThatIsServedAnewHasOneActorPerObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		names := gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]bool, error) {
			return map[string]bool{s.Object.Name: true}, nil
		})
		x.OnCreate("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("begin")
			time.Sleep(5 * time.Second) // ignores its context
			diary.add("end")
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Second)
		c.Patch(t, "apiextensions.k8s.io/v1/customresourcedefinitions", "", "kopfexamples.kopf.dev", map[string]any{
			"spec": map[string]any{"versions": []any{map[string]any{
				"name": "v1", "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}},
			}}},
		})
		time.Sleep(time.Minute)
		if got, want := diary.all(), []string{"begin", "end"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if !names.Has("x") {
			t.Error("the object is no longer in the index")
		}
	})
}

func TestAHandlerMayWakeOthersWhileItsResourceIsRemoved(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("slow", func(ctx context.Context, ch *gopf.Change[*Example]) error {
			time.Sleep(20 * time.Second)
			x.Wake("default", "y")
			return nil
		})
		stop := gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Delete(t, "apiextensions.k8s.io/v1/customresourcedefinitions", "", "kopfexamples.kopf.dev")
		time.Sleep(time.Minute)
		stop()
	})
}

type flaky struct {
	storage.Progress
	fail int
}

func (f *flaky) Save(ctx context.Context, o storage.Object, p storage.Patch, ch map[string]storage.Record, purge []string) error {
	if f.fail > 0 {
		f.fail--
		return errors.New("database is down")
	}
	return f.Progress.Save(ctx, o, p, ch, purge)
}

func TestAStorageThatFailsToSaveDoesNotRepeatHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Persistence.Progress = &flaky{op.Settings.Persistence.Progress, 3}
		gopf.For[*Example](op, resource).OnCreate("c", diary.handler("c"))
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		if n := len(diary.all()); n != 1 {
			t.Errorf("%d calls, want 1", n)
		}
	})
}

func TestTheKeyStaysTheSameOverACrashBetweenTwoWrites(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		mk := func() *gopf.Operator {
			op := gopf.New()
			gopf.For[*Example](op, resource).OnCreate("c", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("%s", ch.Key())
				ch.SetResult("r")
				return nil
			})
			return op
		}
		f := c.Fault(gopftest.Writes("kopfexamples").Where(func(r gopftest.Request) bool { return r.Verb == "patch" && r.Subresource == "" }), gopftest.Fail(403))
		stop := gopftest.Start(t, mk(), c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		stop()
		f.Stop()
		gopftest.Start(t, mk(), c)
		time.Sleep(time.Minute)
		if l := diary.all(); len(l) != 2 || l[0] != l[1] {
			t.Error("the keys differ")
		}
	})
}

func TestAChangeAfterARevertedOneIsHandled(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnUpdate("u", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s #%d %s", ch.Object.Spec.Field, ch.Retry, ch.Key())
			return gopf.RetryAfter(time.Minute, errors.New("no"))
		}, gopf.Timeout(10*time.Minute))
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		set := func(v string) {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": v}})
		}
		set("b")
		time.Sleep(10 * time.Second)
		set("a")
		time.Sleep(time.Hour)
		set("c")
		time.Sleep(5 * time.Second)
		found := false
		for _, l := range diary.all() {
			found = found || strings.HasPrefix(l, "c ")
		}
		if !found {
			t.Error("the change to c was never handled")
		}
	})
}

func TestNoChangeOfAnEmptyObjectIsLost(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "quick", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("quick %s %q", ch.Reason, ch.Object.Spec.Field)
			return nil
		})
		x.OnCreate("slow", diary.failing("slow", 1, time.Minute))
		gopftest.Start(t, op, c)
		settle()
		o := example("x", "a")
		delete(o.Object, "spec")
		c.Create(t, o)
		time.Sleep(10 * time.Second)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Hour)
		if !strings.Contains(fmt.Sprint(diary.all()), `quick update "b"`) {
			t.Error("quick missed the change")
		}
	})
}

func TestAParentWithAResultMayHaveSubHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("p", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.SetResult(map[string]string{"a": "b"})
			ch.Sub("one", diary.handler("one"))
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		if log.has("belongs to the handler") || len(diary.all()) != 1 {
			t.Errorf("an unexpected warning, or calls: %q", diary.all())
		}
	})
}

func TestLargeObjectsAreHandledByAllTheirHandlers(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		short := func(n string) gopf.ChangeFunc[*Example] {
			return func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("%s %s %s", n, ch.Reason, ch.Object.Spec.Field[:3])
				return nil
			}
		}
		x.OnUpdate("one", short("one"))
		x.OnUpdate("two", short("two"))
		gopftest.Start(t, op, c)
		settle()
		big := func(seed uint32) string {
			var b strings.Builder
			for b.Len() < 140_000 {
				seed = seed*1664525 + 1013904223
				b.WriteByte("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789+-"[seed>>26])
			}
			return b.String()
		}
		c.Create(t, example("x", "111"+big(1)))
		time.Sleep(time.Hour)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "222" + big(2)}})
		time.Sleep(3 * time.Hour)
		if !strings.Contains(fmt.Sprint(diary.all()), "two update 222") {
			t.Error("two was never called")
		}
	})
}
