package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestADaemonAccompaniesItsObjectAndTheDeletionWaitsForIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).Daemon("ping", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			diary.add("start %s", d.Object.Spec.Field)
			<-ctx.Done()
			diary.add("stop %s: %v", d.Current().Spec.Field, context.Cause(ctx))
			time.Sleep(10 * time.Second)
			d.SetResult("over")
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		if got := get(t, c, "x").GetFinalizers(); len(got) != 1 {
			t.Errorf("finalizers: %q", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		c.Delete(t, resource, "default", "x")
		time.Sleep(5 * time.Second)
		if _, exists := c.Lookup(t, resource, "default", "x"); !exists {
			t.Error("the object is gone before its daemon has stopped")
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if _, exists := c.Lookup(t, resource, "default", "x"); exists {
			t.Error("the object is still there after its daemon has stopped")
		}
		want := []string{"start a", "stop b: the object is being deleted"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestADaemonThatIgnoresItsContextIsAbandonedAfterItsTimeout(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		release := make(chan struct{})
		op := gopf.New()
		gopf.For[*Example](op, resource).Daemon("deaf", func(context.Context, *gopf.Daemon[*Example]) error {
			<-release
			return nil
		}, gopf.StopGrace(3*time.Second), gopf.StopTimeout(4*time.Second))
		stop := gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		settle()
		c.Delete(t, resource, "default", "x")
		time.Sleep(6 * time.Second)
		if _, exists := c.Lookup(t, resource, "default", "x"); !exists {
			t.Error("the object is gone too early")
		}
		time.Sleep(2 * time.Second)
		if _, exists := c.Lookup(t, resource, "default", "x"); exists {
			t.Error("the object is held by a daemon that was abandoned")
		}
		close(release)
		stop()
	})
}

func TestDaemonsComeAndGoWithTheirFilters(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).WithField("spec.field", gopf.Is("on")).Daemon("ping", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			diary.add("start")
			<-ctx.Done()
			diary.add("%v", context.Cause(ctx))
			return nil
		})
		stop := gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "on"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "off"}})
		settle()
		if got := get(t, c, "x").GetFinalizers(); len(got) != 0 {
			t.Errorf("finalizers of an object without daemons: %q", got)
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "on"}})
		settle()
		stop()
		want := []string{"start", "the object does not match the filters anymore", "start", "the operator is stopping"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAnHourOfTimers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var plain, idle, failing calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		start := time.Now()
		kex.Timer("plain", time.Minute, func(_ context.Context, tick *gopf.Tick[*Example]) error {
			plain.add("%s", time.Since(start))
			tick.Patch.Status(map[string]any{"ticks": len(plain.all())})
			return nil
		})
		kex.Timer("idle", 10*time.Minute, func(context.Context, *gopf.Tick[*Example]) error {
			idle.add("%s", time.Since(start).Round(time.Second))
			return nil
		}, gopf.Idle(5*time.Minute))
		kex.Timer("failing", time.Minute, func(_ context.Context, tick *gopf.Tick[*Example]) error {
			failing.add("#%d", tick.Retry)
			if tick.Retry < 2 {
				return gopf.RetryAfter(time.Second, errors.New("again"))
			}
			tick.Next(time.Hour)
			return nil
		})
		kex.OnUpdate("u", func(context.Context, *gopf.Change[*Example]) error { return nil }) // so that there is a base
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(12*time.Minute + time.Second)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(48 * time.Minute)
		synctest.Wait()
		if got := len(plain.all()); got != 61 {
			t.Errorf("%d ticks in an hour, want 61", got)
		}
		if got, want := idle.all(), []string{"5m0s", "17m1s", "27m1s", "37m1s", "47m1s", "57m1s"}; !slices.Equal(got, want) {
			t.Errorf("the idle timer: got %q, want %q", got, want)
		}
		if got, want := failing.all(), []string{"#0", "#1", "#2"}; !slices.Equal(got, want) {
			t.Errorf("the failing timer: got %q, want %q", got, want)
		}
		if got := gopftest.Get[*Example](t, c, resource, "default", "x").Status["ticks"]; fmt.Sprint(got) != "61" {
			t.Errorf("the status has %v ticks", got)
		}
	})
}

type traffic struct{ pings int }

func TestMemosAreSharedByTheHandlersOfAnObjectAndGoneWithIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		count := func(_ context.Context, ch *gopf.Change[*Example]) error {
			memo := gopf.Memo[traffic](ch)
			memo.pings++
			diary.add("%s %d", ch.Object.Name, memo.pings)
			return nil
		}
		kex.OnCreate("c", count)
		kex.OnUpdate("u", count)
		gopftest.Start(t, op, c)
		settle()
		for range 2 {
			c.Create(t, example("x", "a"))
			settle()
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
			settle()
			c.Delete(t, resource, "default", "x")
			settle()
		}
		if got, want := diary.all(), []string{"x 1", "x 2", "x 1", "x 2"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
