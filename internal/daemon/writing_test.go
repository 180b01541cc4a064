package daemon

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/apply"
)

type fields = map[string]any

func TestResultsAndPatchesAreWrittenAfterEveryAttempt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(_ context.Context, c *Call) error {
			c.Patch.Set(c.Retry, "status", "attempts")
			c.Result = fields{"done": true}
			if c.Retry == 0 {
				return errors.New("oops")
			}
			return nil
		}))
		k.see("a", sight{})
		same(t, []fields{{"status": fields{"attempts": 0}}}, k.sent())
		time.Sleep(time.Hour)
		same(t, []fields{{"status": fields{"attempts": 1, "fn": fields{"done": true}}}}, k.sent())
	})
}

func TestATimerThatAsksForNothingWritesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(time.Second, func(context.Context, *Call) error { return nil }))
		k.see("a", sight{})
		time.Sleep(time.Hour)
		same(t, 0, len(k.sent()))
	})
}

func TestADaemonMayFlushAtAnyTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			c.Patch.Set(1, "status", "step")
			if err := c.Flush(ctx); err != nil {
				t.Error(err)
			}
			c.Patch.Set(2, "status", "step")
			<-ctx.Done()
			// The context is canceled, but the patch is still sent.
			if err := c.Flush(ctx); err != nil {
				t.Error(err)
			}
			c.Patch.Set(3, "status", "step")
			return ctx.Err()
		}))
		k.see("a", sight{})
		same(t, []fields{{"status": fields{"step": 1}}}, k.sent())
		k.see("a", sight{deleting: true})
		same(t, []fields{{"status": fields{"step": 2}}, {"status": fields{"step": 3}}}, k.sent())
	})
}

func TestChangesThatFailedToFlushStayInThePatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			c.Patch.Set(1, "status", "one")
			if c.Flush(ctx) == nil {
				t.Error("Flush returned no error")
			}
			c.Patch.Set(2, "status", "two")
			return nil
		}))
		failures := 1
		k.failing(func() error {
			if failures--; failures >= 0 {
				return errors.New("no connection")
			}
			return nil
		})
		k.see("a", sight{})
		same(t, []fields{{"status": fields{"one": 1, "two": 2}}}, k.sent())
	})
}

func TestAFlushHasTheDeadlineOfItsContext(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, daemonOf(func(ctx context.Context, c *Call) error {
			c.Patch.Set(1, "status", "one")
			short, cancel := context.WithTimeout(ctx, 5*time.Second)
			defer cancel()
			if err := c.Flush(short); errors.Is(err, context.DeadlineExceeded) {
				j.note("too late")
			}
			c.Patch.Remove("status")
			return obedient(ctx, c)
		}))
		k.Write = hanging
		k.see("a", sight{})
		time.Sleep(time.Minute)
		same(t, []string{"5s too late"}, j.read())
	})
}

// TestRetryingAWriteNeverRunsTheHandlerAgain also covers Q-15: an error of the API ends
// neither daemons nor timers.
func TestRetryingAWriteNeverRunsTheHandlerAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(5*time.Second, func(_ context.Context, c *Call) error {
			j.note("called")
			c.Patch.Set(len(j.notes), "status", "n")
			return nil
		}))
		k.failing(func() error {
			if time.Since(k.start) < time.Minute {
				return errors.New("no connection")
			}
			return nil
		})
		k.see("a", sight{})
		time.Sleep(30 * time.Second)
		same(t, []string{"0s called"}, j.read())
		same(t, 0, k.Moving())
		time.Sleep(40 * time.Second) // tried at 0, 1, 11, … 61: the interval counts from then on
		same(t, []string{"1m6s called"}, j.read())
		same(t, []fields{{"status": fields{"n": 1}}, {"status": fields{"n": 1}}}, k.sent())
	})
}

func TestADaemonIsOverOnlyWhenItsResultIsWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, daemonOf(func(_ context.Context, c *Call) error {
			c.Result = "done"
			return nil
		}))
		k.failing(func() error {
			if time.Since(k.start) < 5*time.Second {
				return errors.New("no connection")
			}
			return nil
		})
		k.see("a", sight{})
		time.Sleep(3 * time.Second)
		same(t, "fn", k.running("a"))
		// A deletion waits for the write, but not for the pause before it.
		if due := k.see("a", sight{deleting: true}); !due.Set {
			t.Error("due is unset although a result must be written")
		}
		same(t, 0, len(k.sent()))
		time.Sleep(time.Minute)
		same(t, []fields{{"status": fields{"fn": "done"}}}, k.sent())
		same(t, []string{"13s a"}, k.wakes())
		same(t, "", k.running("a"))
	})
}

func TestARefusedPatchIsTheOutcomeOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(5*time.Second, func(_ context.Context, c *Call) error {
			j.note(fmt.Sprint("called #", c.Retry))
			c.Patch.Set("not a number", "spec", "size")
			return nil
		}))
		k.failing(func() error { return apierrors.NewInvalid(schema.GroupKind{Kind: "X"}, "a", nil) })
		k.see("a", sight{})
		time.Sleep(61 * time.Second)
		same(t, []string{"0s called #0", "1m0s called #1"}, j.read()) // after the backoff instead of the interval
		same(t, 0, len(k.sent()))
		said := k.said()
		last := said[len(said)-1]
		if !strings.Contains(last, "ERROR Timer 'fn' failed with an exception and will try again in 60 seconds: the API server refused the change") {
			t.Error(last)
		}
	})
}

func TestAnEditThatPanicsIsTheOutcomeOfItsCall(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(5*time.Second, func(_ context.Context, c *Call) error {
			c.Patch.Edit(func(map[string]any) { panic("oops") })
			return nil
		}))
		k.see("a", sight{})
		time.Sleep(time.Second)
		said := k.said()
		last := said[len(said)-1]
		if !strings.Contains(last, "will try again in 60 seconds: panic: oops") {
			t.Error(last)
		}
	})
}

func TestADeletedObjectNeedsNoPatch(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(time.Hour, func(ctx context.Context, c *Call) error {
			c.Patch.Set(1, "status", "n")
			if err := c.Flush(ctx); err != nil {
				t.Error(err)
			}
			c.Patch.Set(2, "status", "n")
			return nil
		}))
		k.failing(func() error { return apply.ErrGone })
		k.see("a", sight{})
		same(t, 0, len(k.said()))
		same(t, 0, k.Moving())
	})
}

// The writes are retried after 0.9 and 9 s instead of 1 and 10 s. The interval of the
// timer is the user's, and exact.
func TestRetriesOfWritesHaveJitterAndIntervalsOfTimersDoNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		j := newJournal()
		k := newKit(t, timerOf(5*time.Second, func(_ context.Context, c *Call) error {
			j.note("called")
			c.Patch.Set(len(j.notes), "status", "n")
			return nil
		}))
		k.Jitter = func() float64 { return 0.5 }
		k.failing(func() error {
			if time.Since(k.start) < 5*time.Second {
				return errors.New("no connection")
			}
			return nil
		})
		k.see("a", sight{})
		time.Sleep(20 * time.Second)
		same(t, []string{"0s called", "14.9s called", "19.9s called"}, j.read())
	})
}
