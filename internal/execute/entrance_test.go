package execute

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
)

func TestACallWaitsAtAClosedGate(t *testing.T) {
	why := errors.New("the lease is lost")
	for name, c := range map[string]struct {
		opens, cancels, stops time.Duration // 0 means never
		called                bool
	}{
		"until it opens":           {opens: 5 * time.Second, called: true},
		"until it is canceled":     {opens: time.Minute, cancels: 5 * time.Second},
		"until it is stopped":      {opens: time.Minute, stops: 5 * time.Second},
		"whichever comes first":    {opens: 5 * time.Second, cancels: time.Minute, called: true},
		"not if it is open anyway": {opens: time.Nanosecond, called: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				begun := time.Now()
				ctx, cancel := context.WithCancelCause(t.Context())
				stop := make(chan struct{})
				if c.cancels > 0 {
					time.AfterFunc(c.cancels, func() { cancel(why) })
				}
				if c.stops > 0 {
					time.AfterFunc(c.stops, func() { close(stop) })
				}
				e := NewEntrance(nil, 0)
				e.Open = func() bool { return time.Since(begun) >= c.opens }
				called := false
				outcome := Attempt{
					Title: "Handler", ID: "h", Log: slog.New(slog.DiscardHandler), Started: begun,
					Limits: handler.Limits{Timeout: handler.Some(2 * time.Second)},
					Enter:  e.For(&handler.Handler{ID: "h"}, stop),
					Call: func(ctx context.Context) (any, error) {
						called = true
						if e.Running() != 1 {
							t.Errorf("%d calls are counted", e.Running())
						}
						time.Sleep(time.Second)
						return nil, ctx.Err()
					},
				}.Make(ctx)
				if e.Running() != 0 {
					t.Errorf("%d calls are counted at the end", e.Running())
				}
				if called != c.called || outcome.Void == c.called {
					t.Errorf("called: %v, want %v; the outcome is %+v", called, c.called, outcome)
				}
				if waited := time.Since(begun); waited > 7*time.Second {
					t.Errorf("the call waited for %s", waited)
				}
				if c.called && outcome.Err != nil {
					t.Errorf("the timeout is not extended by the time it waited: %+v", outcome)
				}
				if c.called && outcome.Waited-c.opens.Truncate(100*time.Millisecond) > 100*time.Millisecond || outcome.Waited%(100*time.Millisecond) != 0 {
					t.Errorf("the call waited for %s, want %s, by checks in every tenth of a second", outcome.Waited, c.opens)
				}
				cancel(nil)
			})
		})
	}
}

func TestOnlyLimitedHandlersNeedASlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limited, other := &handler.Handler{ID: "limited"}, &handler.Handler{ID: "sub"}
		e := NewEntrance(handler.Set{limited}, 1)
		leave, err := e.For(limited, nil)(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := e.For(other, nil)(t.Context()); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.For(limited, nil)(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("a second call: got %v, want it to wait", err)
		}
		leave()
		if _, err := e.For(limited, nil)(t.Context()); err != nil {
			t.Errorf("after the first call: %v", err)
		}
	})
}

func TestACallThatGivesUpAtTheGateReleasesItsSlot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler.Handler{ID: "h"}
		e := NewEntrance(handler.Set{h}, 1)
		var open atomic.Bool
		e.Open = open.Load
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := e.For(h, nil)(ctx); err == nil {
			t.Error("a call passed a closed gate")
		}
		open.Store(true)
		if _, err := e.For(h, nil)(t.Context()); err != nil {
			t.Errorf("the slot is lost: %v", err)
		}
	})
}

func TestACallThatWaitsForASlotEndsWithTheStop(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := &handler.Handler{ID: "h"}
		e := NewEntrance(handler.Set{h}, 1)
		if _, err := e.For(h, nil)(t.Context()); err != nil {
			t.Fatal(err)
		}
		stop := make(chan struct{})
		time.AfterFunc(time.Second, func() { close(stop) })
		if _, err := e.For(h, stop)(t.Context()); !errors.Is(err, ErrStopping) {
			t.Errorf("got %v, want %v", err, ErrStopping)
		}
		if e.Running() != 1 {
			t.Errorf("%d calls are counted", e.Running())
		}
	})
}

func TestWithoutALimitEveryCallStartsAtOnce(t *testing.T) {
	h := &handler.Handler{ID: "h"}
	e := NewEntrance(handler.Set{h}, 0)
	ctx, cancel := context.WithCancel(t.Context())
	cancel() // a call that waits ends with an error
	for range 3 {
		if _, err := e.For(h, nil)(ctx); err != nil {
			t.Errorf("a call waits: %v", err)
		}
	}
	var none *Entrance
	if none.Running() != 0 || none.For(h, nil) != nil {
		t.Error("a nil entrance holds calls back")
	}
}
