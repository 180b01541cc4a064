package daemon

import (
	"context"
	"errors"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
	"weak"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

var (
	pausedSight    = sight{paused: true, unchanged: true}
	continuedSight = sight{unchanged: true}
)

// A tenant sets and removes the annotation of the pause as fast as it can.
func TestManyPausesDoNotCallATimerMoreOften(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(time.Hour, func(context.Context, *Call) error { j.note("called"); return nil }))
		k.see("a", sight{})
		for range 500 {
			time.Sleep(23 * time.Millisecond)
			k.see("a", pausedSight)
			time.Sleep(23 * time.Millisecond)
			k.see("a", continuedSight)
		}
		time.Sleep(2*time.Hour - time.Minute)
		same(t, []string{"0s called", "1h0m0s called"}, j.read())
	})
}

func TestATimerContinuesItsScheduleAfterAPause(t *testing.T) {
	const s = time.Second
	ok := func(*Call) error { return nil }
	fail := func(*Call) error { return errors.New("oops") }
	later := func(s *Spec) { s.InitialDelay = func(*handler.Request) time.Duration { return 7 * time.Second } }
	sharp := func(s *Spec) { s.Sharp = true }
	cases := map[string]struct {
		options   []option
		call      func(*Call) error
		from, to  time.Duration // of the pause
		want      []string      // the calls of 40 seconds, with their attempts
		unchanged bool
	}{
		"it is due after the pause":         {nil, ok, 3 * s, 5 * s, []string{"0s 0", "10s 0", "20s 0", "30s 0"}, true},
		"it was due during the pause":       {nil, ok, 3 * s, 25 * s, []string{"0s 0", "25s 0", "35s 0"}, true},
		"it is due at the end of the pause": {nil, ok, 3 * s, 10 * s, []string{"0s 0", "10s 0", "20s 0", "30s 0"}, true},
		"from start to start":               {[]option{sharp}, func(*Call) error { time.Sleep(2 * s); return nil }, 3 * s, 5 * s, []string{"0s 0", "10s 0", "20s 0", "30s 0"}, true},
		"it has chosen its next call":       {nil, func(c *Call) error { c.Next(15 * s); return nil }, 3 * s, 5 * s, []string{"0s 0", "15s 0", "30s 0"}, true},
		"it has failed":                     {[]option{backoff(6 * s)}, fail, 3 * s, 5 * s, []string{"0s 0", "6s 1", "12s 2", "18s 3", "24s 4", "30s 5", "36s 6"}, true},
		"before the first call":             {[]option{later}, ok, 3 * s, 5 * s, []string{"7s 0", "17s 0", "27s 0", "37s 0"}, true},
		"the object is idle":                {[]option{idle(4 * s)}, ok, 5 * s, 6 * s, []string{"4s 0", "14s 0", "24s 0", "34s 0"}, true},
		"the object is changed":             {[]option{idle(8 * s)}, ok, 9 * s, 12 * s, []string{"8s 0", "20s 0", "30s 0"}, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				k := newKit(t, timerOf(10*s, func(_ context.Context, call *Call) error { j.note(call.Retry); return c.call(call) }, c.options...))
				k.see("a", sight{})
				time.Sleep(c.from)
				k.see("a", pausedSight)
				same(t, "", k.running("a"))
				same(t, 0, k.Clock.Len())
				time.Sleep(c.to - c.from)
				k.see("a", sight{unchanged: c.unchanged})
				time.Sleep(39*s - c.to)
				same(t, c.want, j.read())
			})
		})
	}
}

// A pause ends a running call as well, and the next one must not follow at once.
func TestAPauseDuringACallCountsAsTheCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(10*time.Second, func(ctx context.Context, _ *Call) error {
			j.note("called")
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Second):
			}
			time.Sleep(time.Second)
			return ctx.Err()
		}))
		k.see("a", sight{})
		for range 3 {
			time.Sleep(time.Second)
			k.see("a", pausedSight)
			time.Sleep(100 * time.Millisecond)
			k.see("a", continuedSight)
		}
		time.Sleep(time.Minute)
		same(t, []string{"0s called", "12s called", "28s called", "44s called", "1m0s called"}, j.read())
	})
}

func TestATimerThatWasStoppedBeforeItsCallIsDueAfterThePause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(10*time.Second, func(context.Context, *Call) error { j.note("called"); return nil }))
		var full atomic.Bool // there is no memory for a call
		k.Room = func(*object.Body, *Spec) Wait {
			return func(_ context.Context, stopping <-chan struct{}) (leave func()) {
				if full.Load() {
					<-stopping
				}
				return func() {}
			}
		}
		k.see("a", sight{})
		synctest.Wait()
		full.Store(true)
		time.Sleep(12 * time.Second)
		k.see("a", pausedSight)
		synctest.Wait()
		full.Store(false)
		time.Sleep(3 * time.Second)
		k.see("a", continuedSight)
		time.Sleep(time.Second)
		same(t, []string{"0s called", "15s called"}, j.read())
	})
}

func TestACallThatWaitsForMemoryDoesNotHoldItsObject(t *testing.T) {
	for name, spec := range map[string]*Spec{
		"timer":  timerOf(10*time.Second, func(context.Context, *Call) error { return nil }),
		"daemon": daemonOf(func(ctx context.Context, _ *Call) error { <-ctx.Done(); return nil }),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, spec)
				var seen weak.Pointer[object.Body]
				k.Room = noteBody(&seen)
				k.see("a", sight{})
				synctest.Wait()
				runtime.GC()
				if seen.Value() != nil {
					t.Error("the waiting call holds the object")
				}
			})
		})
	}
}

// noteBody returns a Room in which calls wait until they are stopped.
func noteBody(seen *weak.Pointer[object.Body]) func(*object.Body, *Spec) Wait {
	return func(body *object.Body, _ *Spec) Wait {
		*seen = weak.Make(body)
		return func(_ context.Context, stopping <-chan struct{}) (leave func()) {
			<-stopping
			return func() {}
		}
	}
}

func TestTheScheduleOfAPausedTimerIsForgotten(t *testing.T) {
	cases := map[string]struct {
		then   func(*kit)
		called bool // at the next sight of the object
	}{
		"the object is deleted":              {func(k *kit) { k.see("a", sight{deleting: true}) }, true},
		"it no longer matches the filters":   {func(k *kit) { k.see("a", sight{}) }, true},
		"it does not match during the pause": {func(k *kit) { k.see("a", sight{paused: true}) }, false},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				k := newKit(t, timerOf(time.Hour, func(context.Context, *Call) error { j.note("called"); return nil }, labelled("on", "yes")))
				on := map[string]any{"on": "yes"}
				k.see("a", sight{labels: on})
				same(t, []string{"0s called"}, j.read())
				k.see("a", sight{labels: on, paused: true})
				o := k.object("a")
				if running, over := o.IDs(); o == nil || len(running)+len(over) > 0 || o.Body() != nil {
					t.Error("in the pause, the state of the object is not only the schedule")
				}
				c.then(k)
				if kept := k.object("a") != nil; kept == c.called {
					t.Errorf("the state of the object is kept: %v", kept)
				}
				k.see("a", sight{labels: on})
				same(t, c.called, len(j.read()) > 0)
			})
		})
	}
}

func TestNoScheduleIsKeptForOtherStops(t *testing.T) {
	cases := map[string]func(*kit){
		"the operator pauses":            func(k *kit) { k.Pause(); k.Resume() },
		"the object stops matching":      func(k *kit) { k.see("a", sight{}) },
		"the object is no longer served": func(k *kit) { k.object("a").Forget(ErrUnmatched); delete(k.objects, "a") },
	}
	for name, stop := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				k := newKit(t, timerOf(time.Hour, func(context.Context, *Call) error { j.note("called"); return nil }, labelled("on", "yes")))
				on := sight{labels: map[string]any{"on": "yes"}}
				k.see("a", on)
				time.Sleep(time.Minute)
				stop(k)
				k.see("a", on)
				same(t, []string{"0s called", "1m0s called"}, j.read())
			})
		})
	}
}

func TestAForgottenObjectKeepsNoSchedule(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(time.Hour, hearing(j, time.Minute)))
		k.see("a", sight{})
		synctest.Wait()
		k.see("a", pausedSight)
		o := k.object("a")
		o.Forget(ErrDeleted) // its call has not returned yet
		time.Sleep(time.Hour)
		o.mu.Lock()
		defer o.mu.Unlock()
		if len(o.former) > 0 {
			t.Error("the schedule of a timer is kept")
		}
	})
}

// Daemons have no schedule.
func TestADaemonStartsAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, _ *Call) error { j.note("called"); <-ctx.Done(); return nil }))
		k.see("a", sight{})
		time.Sleep(time.Second)
		k.see("a", pausedSight)
		if k.object("a") != nil {
			t.Error("state of the object is kept in the pause")
		}
		k.see("a", continuedSight)
		same(t, []string{"0s called", "1s called"}, j.read())
	})
}
