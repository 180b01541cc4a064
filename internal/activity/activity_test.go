package activity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// calls records the calls with their times.
type calls struct {
	started time.Time
	made    []string
}

func (c *calls) note(id string, call Call) {
	c.made = append(c.made, fmt.Sprintf("%v %s #%d", time.Since(c.started), id, call.Retry))
}

// handler returns a handler with the given results, of which the last one repeats.
func (c *calls) handler(id string, limits handler.Limits, returns ...any) Handler {
	return Handler{ID: id, Where: "op.go:1", Limits: limits, Call: func(_ context.Context, call Call) (any, error) {
		c.note(id, call)
		next := returns[0]
		if len(returns) > 1 {
			returns = returns[1:]
		}
		if err, ok := next.(error); ok {
			return nil, err
		}
		return next, nil
	}}
}

func temporary(delay time.Duration) error {
	return &handler.TemporaryError{Err: errors.New("not yet"), Delay: handler.Some(delay)}
}

func activityOf(log *strings.Builder, handlers ...Handler) Config {
	text := slog.NewTextHandler(log, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.LevelKey || a.Key == slog.MessageKey {
			return a
		}
		return slog.Attr{}
	}})
	return Config{Name: "startup", Handlers: handlers, DefaultBackoff: time.Minute, Log: slog.New(text)}
}

func TestHandlersRunInOrderUntilAllAreFinished(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{started: time.Now()}
		boom := errors.New("boom")
		results, err := Run(t.Context(), activityOf(&strings.Builder{},
			c.handler("a", handler.Limits{}, nil),
			c.handler("b", handler.Limits{}, temporary(200*time.Millisecond), temporary(200*time.Millisecond), "done"),
			c.handler("c", handler.Limits{OnError: handler.Some(handler.Ignore)}, boom),
			c.handler("d", handler.Limits{Backoff: handler.Some(100 * time.Millisecond), Retries: handler.Some(2)}, boom)))
		want := []string{"0s a #0", "0s b #0", "0s c #0", "0s d #0", "100ms d #1", "200ms b #1", "400ms b #2"}
		if diff := cmp.Diff(want, c.made); diff != "" {
			t.Errorf("calls: -want +got\n%s", diff)
		}
		if diff := cmp.Diff(map[string]any{"b": "done"}, results); diff != "" {
			t.Errorf("results: -want +got\n%s", diff)
		}
		failed, ok := errors.AsType[*FailedError](err)
		if !ok || len(failed.Handlers) != 1 || failed.Handlers[0].ID != "d" || !errors.Is(err, execute.ErrRetries) {
			t.Errorf("got the error %v", err)
		}
		if !strings.HasPrefix(err.Error(), "One or more handlers failed. startup 'd' (op.go:1): ") {
			t.Errorf("the error reads %q", err)
		}
	})
}

func TestAllErrorsAreReturned(t *testing.T) {
	one, two := errors.New("one"), errors.New("two")
	fail := handler.Limits{OnError: handler.Some(handler.Fail)}
	c := &calls{started: time.Now()}
	results, err := Run(t.Context(), activityOf(&strings.Builder{},
		c.handler("a", handler.Limits{}, &handler.PermanentError{Err: one}), c.handler("b", fail, two), c.handler("c", fail, 3)))
	if !errors.Is(err, one) || !errors.Is(err, two) {
		t.Errorf("got the error %v", err)
	}
	if diff := cmp.Diff(map[string]any{"c": 3}, results); diff != "" {
		t.Errorf("results: -want +got\n%s", diff)
	}
}

func TestErrorsAreRetriedWithTheDefaultBackoff(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &calls{started: time.Now()}
		if _, err := Run(t.Context(), activityOf(&strings.Builder{},
			c.handler("a", handler.Limits{}, errors.New("x"), errors.New("y"), nil))); err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff([]string{"0s a #0", "1m0s a #1", "2m0s a #2"}, c.made); diff != "" {
			t.Errorf("calls: -want +got\n%s", diff)
		}
	})
}

func TestAnActivityWithoutHandlersSucceeds(t *testing.T) {
	results, err := Run(t.Context(), activityOf(&strings.Builder{}))
	if len(results) != 0 || err != nil {
		t.Errorf("got %v, %v", results, err)
	}
}

func TestLogLines(t *testing.T) {
	var log strings.Builder
	c := &calls{started: time.Now()}
	if _, err := Run(t.Context(), activityOf(&log, c.handler("a", handler.Limits{}, temporary(0), nil))); err != nil {
		t.Fatal(err)
	}
	want := `level=ERROR msg="Activity 'a' failed temporarily: not yet"` + "\n" + `level=INFO msg="Activity 'a' succeeded."` + "\n"
	if log.String() != want {
		t.Errorf("got %s", log.String())
	}
}

func TestAnEndedContextEndsTheActivity(t *testing.T) {
	enough := errors.New("enough")
	t.Run("while it waits", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(30*time.Second, func() { cancel(enough) })
			c := &calls{started: time.Now()}
			results, err := Run(ctx, activityOf(&strings.Builder{}, c.handler("a", handler.Limits{}, "done"),
				c.handler("b", handler.Limits{}, errors.New("x")), c.handler("c", handler.Limits{}, errors.New("x"))))
			unfinished, ok := errors.AsType[*UnfinishedError](err)
			if !ok || !errors.Is(err, enough) || time.Since(c.started) != 30*time.Second {
				t.Fatalf("got %v after %v", err, time.Since(c.started))
			}
			if diff := cmp.Diff([]string{"b", "c"}, unfinished.IDs); diff != "" {
				t.Errorf("unfinished: -want +got\n%s", diff)
			}
			if results["a"] != "done" {
				t.Errorf("results: got %v", results)
			}
		})
	})
	t.Run("while a handler runs", func(t *testing.T) {
		synctest.Test(t, func(t *testing.T) {
			ctx, cancel := context.WithCancelCause(t.Context())
			time.AfterFunc(30*time.Second, func() { cancel(enough) })
			var log strings.Builder
			second := false
			_, err := Run(ctx, activityOf(&log,
				Handler{ID: "a", Limits: handler.Limits{Retries: handler.Some(1)}, Call: func(ctx context.Context, _ Call) (any, error) {
					<-ctx.Done()
					return nil, ctx.Err()
				}},
				Handler{ID: "b", Call: func(context.Context, Call) (any, error) { second = true; return nil, nil }}))
			if _, failed := errors.AsType[*FailedError](err); failed || !errors.Is(err, enough) || second {
				t.Errorf("got %v, the second handler was called: %v", err, second)
			}
			if want := "level=WARN msg=\"Activity 'a' is interrupted by the stop and will be called again at the next start.\"\n"; log.String() != want {
				t.Errorf("log: got %s", log.String())
			}
		})
	})
	t.Run("before it begins", func(t *testing.T) {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		c := &calls{started: time.Now()}
		if _, err := Run(ctx, activityOf(&strings.Builder{}, c.handler("a", handler.Limits{}, nil))); !errors.Is(err, context.Canceled) || len(c.made) > 0 {
			t.Errorf("got %v and the calls %v", err, c.made)
		}
	})
}

func TestAFinishedActivityLeavesNothingBehind(t *testing.T) {
	synctest.Test(t, func(t *testing.T) { // it fails if goroutines remain
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		c := &calls{started: time.Now()}
		if _, err := Run(ctx, activityOf(&strings.Builder{}, c.handler("a", handler.Limits{}, nil))); err != nil {
			t.Error(err)
		}
	})
}
