package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	"gopf.dev/gopf/internal/handler"
)

func same[T any](t *testing.T, want, got T) {
	t.Helper()
	if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
}

func TestTimersRunOnVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls atomic.Int64
		k := newKit(t, timerOf(10*time.Second, func(context.Context, *Call) error { calls.Add(1); return nil }))
		for i := range 20 {
			k.see(fmt.Sprint(i), sight{})
		}
		time.Sleep(time.Hour - time.Second)
		if got := calls.Load(); got != 20*360 {
			t.Errorf("%d calls, want %d", got, 20*360)
		}
	})
}

// few is the number of unrelated goroutines that may start or end.
const few = 10

func TestWaitingTasksHaveNoGoroutine(t *testing.T) {
	succeeding := func(context.Context, *Call) error { return nil }
	failing := func(context.Context, *Call) error { return errors.New("oops") }
	later := func(s *Spec) { s.InitialDelay = func(*handler.Request) time.Duration { return time.Minute } }
	cases := map[string]struct {
		spec    *Spec
		objects int
	}{
		"a timer between two calls":     {timerOf(time.Hour, succeeding), 10_000},
		"a timer of idle objects":       {timerOf(0, succeeding, idle(time.Minute)), 1000},
		"a daemon before its delay":     {daemonOf(obedient, later), 1000},
		"a daemon between two attempts": {daemonOf(failing), 1000},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, c.spec)
				synctest.Wait()
				before := runtime.NumGoroutine()
				for i := range c.objects {
					k.see(fmt.Sprint(i), sight{})
				}
				synctest.Wait()
				if extra := runtime.NumGoroutine() - before; extra > few {
					t.Errorf("%d goroutines for waiting tasks", extra)
				}
				same(t, c.objects, k.Clock.Len())
				for i := range c.objects {
					k.see(fmt.Sprint(i), sight{deleting: true})
				}
				same(t, 0, k.Clock.Len())
			})
		})
	}
}

func TestATimerNeverOverlapsWithItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var at atomic.Int32
		j := newJournal()
		k := newKit(t, timerOf(time.Second, func(context.Context, *Call) error {
			if at.Add(1) > 1 {
				t.Error("two calls at a time")
			}
			defer at.Add(-1)
			j.note("called")
			time.Sleep(10 * time.Second)
			return nil
		}))
		k.see("a", sight{})
		for range 30 {
			time.Sleep(500 * time.Millisecond)
			k.see("a", sight{})
			k.object("a").Hurry(func(string) bool { return false })
		}
		same(t, []string{"0s called", "11s called"}, j.read())
	})
}

func TestATimerChoosesItsNextCallOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(10*time.Second, func(_ context.Context, c *Call) error {
			j.note("called")
			if len(j.notes) == 2 {
				c.Next(3 * time.Second)
			}
			return nil
		}))
		k.see("a", sight{})
		time.Sleep(30 * time.Second)
		same(t, []string{"0s called", "10s called", "13s called", "23s called"}, j.read())
	})
}

func TestErrorsOverrideTheChosenNextCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(0, func(_ context.Context, c *Call) error {
			j.note(c.Retry)
			c.Next(time.Minute)
			if c.Retry < 2 {
				return errors.New("oops")
			}
			c.Next(0)
			if len(j.notes) > 4 {
				c.next = handler.Opt[time.Duration]{}
			}
			return nil
		}, backoff(5*time.Second)))
		k.see("a", sight{})
		time.Sleep(time.Hour)
		same(t, []string{"0s 0", "5s 1", "10s 2", "10s 0", "15s 1", "20s 2"}, j.read())
		same(t, "fn", k.over("a")) // without an interval it is called only once
	})
}

func TestAPermanentFailureDoesNotEndATimer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(10*time.Second, func(_ context.Context, c *Call) error {
			j.note(c.Retry)
			return &handler.PermanentError{Err: errors.New("no")}
		}))
		k.see("a", sight{})
		time.Sleep(25 * time.Second)
		same(t, []string{"0s 0", "10s 0", "20s 0"}, j.read())
	})
}

func TestTimeoutsCountFromTheFirstCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(time.Hour, func(_ context.Context, c *Call) error {
			j.note(c.Retry)
			return errors.New("oops")
		}, idle(10*time.Minute), backoff(20*time.Second), func(s *Spec) { s.Limits.Timeout = handler.Some(time.Minute) }))
		k.see("a", sight{})
		time.Sleep(time.Hour)
		same(t, []string{"10m0s 0", "10m20s 1", "10m40s 2"}, j.read())
	})
}

func TestOnlyChangesOfTheEssenceResetIdling(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(0, func(_ context.Context, c *Call) error { j.note(c.Body.Map()["spec"]); return nil }, idle(10*time.Second)))
		k.see("a", sight{spec: 1})
		time.Sleep(5 * time.Second)
		k.see("a", sight{spec: 2})
		time.Sleep(5 * time.Second)
		k.see("a", sight{spec: 3, unchanged: true})
		time.Sleep(time.Minute)
		k.see("a", sight{spec: 4, unchanged: true})
		time.Sleep(time.Minute)
		same(t, []string{"15s 3"}, j.read())
		k.see("a", sight{spec: 5})
		time.Sleep(time.Minute)
		same(t, []string{"2m20s 5"}, j.read())
	})
}

func TestHurryMakesTimersDue(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		call := func(_ context.Context, c *Call) error { j.note(c.Handler.ID); time.Sleep(time.Second); return nil }
		k := newKit(t, timerOf(time.Hour, call, named("one")), timerOf(0, call, named("two"), idle(time.Hour)))
		k.see("a", sight{})
		time.Sleep(time.Minute)
		same(t, []string{"0s one"}, j.read())
		k.object("a").Hurry(func(id string) bool { return id == "two" })
		same(t, []string{"1m0s two"}, j.read())
		// A running call may not have seen the change, so the timer is called once more.
		k.object("a").Hurry(func(string) bool { return true })
		time.Sleep(10 * time.Second)
		same(t, []string{"1m0s one", "1m1s two"}, j.read())
	})
}

func TestASingleCallTimerReleasesTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(0, func(context.Context, *Call) error { j.note("called"); time.Sleep(time.Second); return nil }))
		k.see("a", sight{})
		if !k.Blocking(k.object("a"), k.request(k.last["a"])) {
			t.Error("the object is not blocked while the timer runs")
		}
		time.Sleep(time.Minute)
		k.see("a", sight{})
		time.Sleep(time.Minute)
		same(t, []string{"0s called"}, j.read())
		same(t, []string{"1s a"}, k.wakes())
		if k.Blocking(k.object("a"), k.request(k.last["a"])) {
			t.Error("the object is still blocked by a task that is over")
		}
		if k.object("a").Body() != nil {
			t.Error("the body is kept without a task")
		}
	})
}

func TestAnUndecodableObjectIsRetriedOnAnyChange(t *testing.T) { // rule 14
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(time.Hour, func(_ context.Context, c *Call) error {
			j.note(c.Retry)
			if c.Body.Map()["spec"] == "broken" {
				return &handler.UndecodableError{Err: errors.New("not a number")}
			}
			return nil
		}, backoff(10*time.Minute)))
		k.see("a", sight{spec: "broken"})
		time.Sleep(10 * time.Minute)
		same(t, []string{"0s 0", "10m0s 0"}, j.read()) // no attempt is counted
		time.Sleep(time.Minute)
		k.see("a", sight{spec: "fixed", unchanged: true})
		time.Sleep(time.Minute)
		same(t, []string{"11m0s 0"}, j.read())
	})
}

func TestAWaitingTimerStopsInTheSameTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(time.Hour, func(context.Context, *Call) error { return nil }))
		k.see("a", sight{})
		time.Sleep(time.Minute)
		if due := k.see("a", sight{deleting: true}); due.Set {
			t.Errorf("due in %v, want unset", due.Is)
		}
		if k.object("a") != nil {
			t.Error("kept state of the object")
		}
		same(t, 0, len(k.wakes()))
	})
}

func TestACallOfATimerHoldsMemoryUntilItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var held, left atomic.Int64
		hold := func(_ context.Context, _ string, bytes int, _, _ bool) bool { held.Add(int64(bytes)); return true }
		reads := func(ctx context.Context, c *Call) error {
			if c.Hold == nil || !c.Hold(ctx, "x", 5, true, false) || left.Load() != held.Load()-5 {
				t.Errorf("%d bytes were held before, and %d given back", held.Load(), left.Load())
			}
			return nil
		}
		daemon := daemonOf(func(_ context.Context, c *Call) error {
			if c.Hold != nil {
				t.Error("a daemon would hold its memory for as long as its object exists")
			}
			return nil
		})
		k := newKit(t, timerOf(time.Minute, reads, named("timer")), daemon)
		k.reads = func(context.Context) (handler.Hold, func()) { return hold, func() { left.Store(held.Load()) } }
		k.see("a", sight{})
		time.Sleep(time.Minute * 5 / 2)
		if held.Load() != 15 || left.Load() != 15 {
			t.Errorf("%d bytes were held, %d given back", held.Load(), left.Load())
		}
	})
}
