package daemon

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// hearing is a daemon that records its signals, and returns some time after its context
// is canceled.
func hearing(j *journal, exit time.Duration) func(context.Context, *Call) error {
	return func(ctx context.Context, c *Call) error {
		<-c.Stopping()
		j.note("stopping")
		<-ctx.Done()
		j.note(context.Cause(ctx))
		time.Sleep(exit)
		return ctx.Err()
	}
}

func TestADaemonSeesTheReasonOfItsStop(t *testing.T) {
	cases := map[string]struct {
		stop func(*kit)
		why  error
	}{
		"deletion":      {func(k *kit) { k.see("a", sight{deleting: true}) }, ErrDeleted},
		"forgotten":     {func(k *kit) { k.object("a").Forget(ErrDeleted) }, ErrDeleted},
		"other filters": {func(k *kit) { k.see("a", sight{labels: map[string]any{"off": "yes"}}) }, ErrUnmatched},
		"pause":         {func(k *kit) { k.Pause() }, ErrPaused},
		"exit":          {func(k *kit) { k.Exit(context.Background()) }, execute.ErrStopping},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				k := newKit(t, daemonOf(hearing(j, 0), func(s *Spec) {
					s.When = append(s.When, func(r *handler.Request) bool { return r.Body.Labels()["off"] == nil })
				}))
				k.see("a", sight{})
				time.Sleep(time.Minute)
				c.stop(k)
				same(t, []string{"1m0s stopping", "1m0s " + c.why.Error()}, j.read())
				same(t, "", k.running("a"))
			})
		})
	}
}

func TestTheStagesOfAStop(t *testing.T) {
	const s = time.Second
	signalled := "10ms DEBUG Daemon 'fn' is signalled to exit gracefully."
	exited := " DEBUG Daemon 'fn' has exited on request and will not be retried or restarted."
	cases := map[string]struct {
		options []option
		exits   time.Duration // after the cancellation
		heard   []string
		said    []string
		free    string // when the object is released
	}{
		"at once": {
			nil, 0,
			[]string{"0s stopping", "0s the object is being deleted"},
			[]string{"0s" + exited}, "0s",
		},
		"no timeout": {
			nil, 70 * s,
			[]string{"0s stopping", "0s the object is being deleted"},
			[]string{
				"10ms DEBUG Daemon 'fn' is still exiting. The next check is in 60 seconds.",
				"1m0s DEBUG Daemon 'fn' is still exiting. The next check is in 60 seconds.", "1m10s" + exited,
			}, "1m10s",
		},
		"grace": {
			[]option{grace(3 * s)}, s,
			[]string{"0s stopping", "3s the object is being deleted"},
			[]string{
				signalled, "3s DEBUG Daemon 'fn' is signalled to exit by force.",
				"3.01s DEBUG Daemon 'fn' is still exiting. The next check is in 60 seconds.", "4s" + exited,
			}, "4s",
		},
		"timeout": {
			[]option{timeout(4 * s)}, 100 * s,
			[]string{"0s stopping", "0s the object is being deleted"},
			[]string{
				"0s DEBUG Daemon 'fn' is signalled to exit by force.",
				"4s WARN Daemon 'fn' did not exit in time. Leaving it orphaned.", "1m40s" + exited,
			}, "4s",
		},
		"grace and timeout": {
			[]option{grace(3 * s), timeout(4 * s)}, 100 * s,
			[]string{"0s stopping", "3s the object is being deleted"},
			[]string{
				signalled, "3s DEBUG Daemon 'fn' is signalled to exit by force.",
				"7s WARN Daemon 'fn' did not exit in time. Leaving it orphaned.", "1m43s" + exited,
			}, "7s",
		},
		"zero timeout": {
			[]option{timeout(0)}, s,
			[]string{"0s stopping", "0s the object is being deleted"},
			[]string{
				"0s DEBUG Daemon 'fn' is signalled to exit by force.",
				"10ms WARN Daemon 'fn' did not exit in time. Leaving it orphaned.", "1s" + exited,
			}, "10ms",
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				j := newJournal()
				k := newKit(t, daemonOf(hearing(j, c.exits), c.options...))
				k.see("a", sight{})
				synctest.Wait()
				if due := k.see("a", sight{deleting: true}); !due.Set {
					t.Error("due is unset although the daemon runs")
				}
				time.Sleep(time.Hour)
				same(t, c.heard, j.read())
				same(t, c.said, k.said())
				if len(k.wakes()) == 0 || k.wakes()[0] != c.free+" a" {
					t.Errorf("woken at %v, want %v", k.wakes(), c.free)
				}
			})
		})
	}
}

func TestAStopProceedsWithoutTurnsOfTheObject(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, time.Hour), grace(3*time.Second), timeout(4*time.Second)))
		k.see("a", sight{})
		synctest.Wait()
		k.object("a").Forget(ErrDeleted)
		time.Sleep(2 * time.Hour)
		same(t, []string{"0s stopping", "3s the object is being deleted"}, j.read())
		same(t, "7s WARN Daemon 'fn' did not exit in time. Leaving it orphaned.", k.said()[2])
		same(t, 0, len(k.wakes())) // the object was forgotten
	})
}

func TestTheFirstStopReasonIsKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, time.Minute), labelled("on", "yes"), grace(10*time.Second)))
		k.see("a", sight{labels: map[string]any{"on": "yes"}})
		synctest.Wait()
		k.see("a", sight{})
		time.Sleep(5 * time.Second)
		k.see("a", sight{deleting: true})
		time.Sleep(time.Hour)
		same(t, []string{"0s stopping", "10s the object does not match the filters anymore"}, j.read())
	})
}

func TestAnAbandonedDaemonIsNotSpawnedAgainBeforeItEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, time.Hour), labelled("on", "yes"), timeout(time.Second)))
		on := sight{labels: map[string]any{"on": "yes"}}
		k.see("a", on)
		synctest.Wait()
		k.see("a", sight{})
		time.Sleep(time.Minute)
		k.see("a", on)
		time.Sleep(30 * time.Minute)
		same(t, []string{"0s stopping", "0s the object does not match the filters anymore"}, j.read())
		time.Sleep(time.Hour)
		same(t, []string{"1s a", "1h0m0s a"}, k.wakes())
		k.see("a", sight{deleting: true}) // the second instance
		same(t, 2, len(j.read()))
		time.Sleep(time.Hour) // until it ends
	})
}

func TestErrorsDuringAStopAreNotFailedAttempts(t *testing.T) {
	cases := map[string]struct {
		err  error
		stop func(*kit)
		said []string
	}{
		"a cancellation is no error": {
			context.Canceled, func(k *kit) { k.see("a", sight{deleting: true}) }, nil,
		},
		"the stop reason is no error": {ErrPaused, func(k *kit) { k.Pause() }, nil},
		"other errors are logged but not retried": {
			errors.New("oops"), func(k *kit) { k.see("a", sight{deleting: true}) },
			[]string{"0s ERROR Daemon 'fn' failed permanently: oops"},
		},
		"temporary errors are not retried": {
			&handler.TemporaryError{Err: errors.New("later")}, func(k *kit) { k.see("a", sight{deleting: true}) },
			[]string{"0s ERROR Daemon 'fn' failed permanently: later"},
		},
		"at exit, the next start makes another attempt": {
			errors.New("oops"), func(k *kit) { k.Exit(context.Background()) },
			[]string{"0s WARN Daemon 'fn' is interrupted by the stop and will be called again at the next start."},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				k := newKit(t, daemonOf(func(ctx context.Context, _ *Call) error { <-ctx.Done(); return c.err }))
				k.see("a", sight{})
				synctest.Wait()
				c.stop(k)
				said := k.said()
				if len(said) < len(c.said) {
					t.Fatal(said)
				}
				same(t, c.said, said[:len(c.said):len(c.said)])
				same(t, "0s DEBUG Daemon 'fn' has exited on request and will not be retried or restarted.", said[len(c.said)])
			})
		})
	}
}

func TestATimerThatIsBeingCalledIsStoppedLikeADaemon(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(time.Hour, hearing(j, 5*time.Second)))
		k.see("a", sight{})
		synctest.Wait()
		if due := k.see("a", sight{deleting: true}); !due.Set {
			t.Error("due is unset although it is being called")
		}
		time.Sleep(time.Minute)
		same(t, []string{"0s stopping", "0s the object is being deleted"}, j.read())
		same(t, []string{"10ms DEBUG Timer 'fn' is still exiting. The next check is in 60 seconds."}, k.said())
		same(t, []string{"5s a"}, k.wakes())
	})
}

func TestDueIsTheTimeOfTheNextStage(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(hearing(j, time.Hour), grace(3*time.Second), timeout(4*time.Second)))
		k.see("a", sight{})
		synctest.Wait()
		for _, want := range []string{"3s", "2s", "1s", "4s", "3s", "2s", "1s"} {
			same(t, want, k.see("a", sight{deleting: true}).Is.String())
			time.Sleep(time.Second)
			synctest.Wait()
		}
		same(t, handler.Opt[time.Duration]{}, k.see("a", sight{deleting: true}))
		time.Sleep(2 * time.Hour)
	})
}
