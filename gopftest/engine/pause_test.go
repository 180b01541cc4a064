package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestAPausedOperatorHandlesNothingAndCatchesUp(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", diary.handler("create"))
		x.OnUpdate("update", diary.handler("update"))
		x.OnDelete("delete", diary.handler("delete"))
		x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			if e.Type == "DELETED" {
				diary.add("gone %s missed=%v", e.Object.GetName(), e.Missed)
			}
			return nil
		})
		gopftest.Start(t, op, c)
		c.Create(t, example("changed", "a"))
		c.Create(t, example("vanished", "a"))
		settle()
		op.Pause("for a test")
		settle()
		before := len(c.Requests())
		c.Patch(t, resource, "default", "changed", map[string]any{"spec": map[string]any{"field": "b"}})
		c.Create(t, example("new", "a"))
		c.Patch(t, resource, "default", "vanished", map[string]any{"metadata": map[string]any{"finalizers": nil}})
		c.Delete(t, resource, "default", "vanished")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 2 {
			t.Errorf("calls in the pause: %q", got)
		}
		for _, r := range c.Requests()[before:] {
			if r.Resource == "kopfexamples" {
				t.Errorf("a request in the pause: %+v", r)
			}
		}
		op.Unpause()
		settle()
		got := diary.all()[2:]
		slices.Sort(got)
		want := []string{"create create a", "gone vanished missed=true", "update update b"}
		if !slices.Equal(got, want) {
			t.Errorf("after the pause: got %q, want %q", got, want)
		}
	})
}

func TestDelayedHandlersWaitForTheEndOfThePause(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", diary.failing("create", 2, time.Minute))
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		settle()
		op.Pause("for a test")
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := diary.all(); len(got) != 1 {
			t.Errorf("in the pause: %q", got)
		}
		op.Unpause()
		settle()
		if got := diary.all(); len(got) != 2 {
			t.Errorf("right after the pause: %q", got)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 3 {
			t.Errorf("a minute after the pause: %q", got)
		}
	})
}

func TestDaemonsAndTimersStopForAPause(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.Daemon("daemon", func(ctx context.Context, _ *gopf.Daemon[*Example]) error {
			diary.add("start")
			<-ctx.Done()
			diary.add("stop: %v", context.Cause(ctx))
			return nil
		})
		x.Timer("timer", time.Minute, func(context.Context, *gopf.Tick[*Example]) error {
			diary.add("tick")
			return nil
		}, gopf.InitialDelay(30*time.Second))
		op.Pause("from the start")
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		synctest.Wait()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("before the first resuming: %q", got)
		}
		op.Unpause()
		time.Sleep(100 * time.Second)
		op.Pause("again")
		time.Sleep(time.Hour)
		op.Unpause()
		time.Sleep(40 * time.Second)
		synctest.Wait()
		want := []string{"start", "tick", "tick", "stop: the operator is pausing", "start", "tick"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAPauseTakesEffectBetweenTheHandlersOfOneObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		for _, id := range []string{"one", "two", "three"} {
			x.OnCreate(id, func(context.Context, *gopf.Change[*Example]) error {
				diary.add("%s begins", id)
				time.Sleep(10 * time.Second)
				diary.add("%s ends", id)
				return nil
			})
		}
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		time.Sleep(5 * time.Second)
		op.Pause("for a test")
		time.Sleep(10 * time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"one begins", "one ends"}; !slices.Equal(got, want) {
			t.Errorf("in the pause: got %q, want %q", got, want)
		}
		op.Unpause()
		time.Sleep(time.Minute)
		synctest.Wait()
		want := []string{"one begins", "one ends", "two begins", "two ends", "three begins", "three ends"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("after the pause: got %q, want %q", got, want)
		}
	})
}

func TestAChangeBeforeTheLastWriteIsHandledAfterThePause(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
			time.Sleep(10 * time.Second)
			diary.add("create %s", ch.Object.Spec.Field)
			return nil
		})
		x.OnUpdate("update", diary.handler("update"))
		gopftest.Start(t, op, c)
		c.Create(t, example("x", "a"))
		time.Sleep(5 * time.Second)
		op.Pause("for a test")
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Minute)
		op.Unpause()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"create a", "update update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAPauseAfterAddingTheFinalizerDelaysTheHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", diary.handler("create"))
		x.OnDelete("delete", diary.handler("delete"))
		gopftest.Start(t, op, c)
		c.Fault(gopftest.Requests("patch", "kopfexamples").Nth(1), gopftest.After(func(gopftest.Request) { op.Pause("for a test") }))
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		synctest.Wait()
		if got := diary.all(); len(got) != 0 {
			t.Errorf("in the pause: %q", got)
		}
		op.Unpause()
		time.Sleep(time.Minute)
		synctest.Wait()
		if got, want := diary.all(), []string{"create create a"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestConsecutivePausesLoseNothing(t *testing.T) {
	const objects, changes = 20, 10
	for gap := range 2 {
		t.Run(fmt.Sprint(gap), func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var last sync.Map
				op := gopf.New()
				op.Settings.Queueing.WorkerLimit = 1
				x := gopf.For[*Example](op, resource)
				x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
					time.Sleep(10 * time.Millisecond)
					last.Store(ch.Object.Name, ch.Object.Spec.Field[:4])
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				field := func(v int) string { return fmt.Sprintf("%04d", v) + strings.Repeat("x", 50_000) }
				for i := range objects {
					c.Create(t, example(fmt.Sprint("o", i), field(0)))
				}
				for v := 1; v <= changes; v++ {
					for i := range objects {
						c.Patch(t, resource, "default", fmt.Sprint("o", i), map[string]any{"spec": map[string]any{"field": field(v)}})
					}
					time.Sleep(time.Duration(gap) * time.Millisecond)
					op.Pause("test")
					op.Unpause()
				}
				time.Sleep(time.Hour)
				for i := range objects {
					if v, _ := last.Load(fmt.Sprint("o", i)); v != fmt.Sprintf("%04d", changes) {
						t.Errorf("o%d was last handled at %v", i, v)
					}
				}
			})
		})
	}
}
