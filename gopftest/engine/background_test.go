package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestADeletionWaitsForTheDaemonOfTheObject(t *testing.T) {
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
			t.Error("the object was deleted before its daemon stopped")
		}
		time.Sleep(6 * time.Second)
		synctest.Wait()
		if _, exists := c.Lookup(t, resource, "default", "x"); exists {
			t.Error("the object still exists after its daemon stopped")
		}
		want := []string{"start a", "stop b: the object is being deleted"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestADaemonThatIgnoresItsContextIsAbandoned(t *testing.T) {
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
			t.Error("the object was deleted too early")
		}
		time.Sleep(2 * time.Second)
		if _, exists := c.Lookup(t, resource, "default", "x"); exists {
			t.Error("an abandoned daemon blocks the deletion")
		}
		close(release)
		stop()
	})
}

func TestDaemonsStartAndStopWithTheirFilters(t *testing.T) {
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
			tick.Patch.MergeStatus(map[string]any{"ticks": len(plain.all())})
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
		kex.OnUpdate("u", func(context.Context, *gopf.Change[*Example]) error { return nil }) // to have a base
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

func TestMemosAreSharedByHandlersAndRemovedWithTheObject(t *testing.T) {
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

func TestTheInitialDelayMayDependOnTheObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := time.Now()
		op := gopf.New()
		delay := gopf.InitialDelayBy(func(s *gopf.Subject[*Example]) time.Duration {
			d, err := time.ParseDuration(s.Object.Spec.Field)
			if err != nil {
				t.Error(err)
			}
			return d
		})
		x := gopf.For[*Example](op, resource)
		x.Daemon("d", func(_ context.Context, d *gopf.Daemon[*Example]) error {
			diary.add("daemon %s after %s", d.Object.Name, time.Since(start).Truncate(time.Second))
			return nil
		}, delay)
		x.Timer("t", time.Hour, func(_ context.Context, tick *gopf.Tick[*Example]) error {
			diary.add("timer %s after %s", tick.Object.Name, time.Since(start).Truncate(time.Second))
			return nil
		}, delay)
		gopftest.Start(t, op, c)
		c.Create(t, example("late", "20s"))
		c.Create(t, example("soon", "5s"))
		time.Sleep(time.Minute)
		got := diary.all()
		slices.Sort(got)
		want := []string{"daemon late after 20s", "daemon soon after 5s", "timer late after 20s", "timer soon after 5s"}
		if !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestStopPollingIsTheLogIntervalForDaemonsThatDoNotStop(t *testing.T) {
	cases := map[string]struct {
		opts []gopf.DaemonOption
		want int // log lines within 65 s
	}{
		"by default, a minute": {nil, 2},
		"ten seconds":          {[]gopf.DaemonOption{gopf.StopPolling(10 * time.Second)}, 7},
	}
	for name, test := range cases {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				release := make(chan struct{})
				op := gopf.New()
				gopf.For[*Example](op, resource).Daemon("deaf", func(context.Context, *gopf.Daemon[*Example]) error {
					<-release
					return nil
				}, test.opts...)
				var log lines
				stop := gopftest.Start(t, op, c, gopf.Log(log.logger()))
				settle()
				c.Create(t, example("x", "a"))
				settle()
				c.Delete(t, resource, "default", "x")
				time.Sleep(65 * time.Second)
				if got := log.count("is still exiting"); got != test.want {
					t.Errorf("got %d lines, want %d", got, test.want)
				}
				close(release)
				stop()
			})
		})
	}
}

func TestADaemonSetsTheStatusThatItKnowsNow(t *testing.T) {
	type status struct {
		Phase string `json:"phase,omitempty"`
		Error string `json:"error,omitempty"`
	}
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).Daemon("watch", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			time.Sleep(time.Minute) // another client sets the error meanwhile
			d.Patch.SetStatus(status{Phase: "Ready"})
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		c.Create(t, example("x", "a"))
		settle()
		c.PatchStatus(t, resource, "default", "x", map[string]any{"status": map[string]any{"error": "no space", "other": "kept"}})
		time.Sleep(2 * time.Minute)
		got := c.Get(t, resource, "default", "x").Object["status"]
		if diff := cmp.Diff(map[string]any{"phase": "Ready", "other": "kept"}, got); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}
