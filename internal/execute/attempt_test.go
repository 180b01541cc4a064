package execute

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/handler"
)

// printed is a text log without timestamps.
func printed(into *bytes.Buffer) *slog.Logger {
	return slog.New(slog.NewTextHandler(into, &slog.HandlerOptions{Level: slog.LevelInfo, ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey {
			return slog.Attr{}
		}
		return a
	}}))
}

func some(d time.Duration) handler.Opt[time.Duration] { return handler.Some(d) }

func TestAttemptOutcomes(t *testing.T) {
	boom := errors.New("boom")
	limits := func(timeout time.Duration, retries int) (l handler.Limits) {
		if timeout > 0 {
			l.Timeout = some(timeout)
		}
		if retries > 0 {
			l.Retries = handler.Some(retries)
		}
		return l
	}
	mode := func(m handler.ErrorMode) handler.Limits { return handler.Limits{OnError: handler.Some(m)} }
	cases := map[string]struct {
		limits  handler.Limits
		retries int
		age     time.Duration
		err     error
		want    Outcome // without Err and Ignored
		failed  bool
		log     string
	}{
		"success":                   {want: Outcome{Final: true, Result: "r"}, log: "level=INFO msg=\"Handler 'h' succeeded.\""},
		"unclassified":              {err: boom, failed: true, want: Outcome{Message: "boom", Delay: some(time.Minute)}, log: "will try again in 60 seconds: boom"},
		"with a backoff of its own": {err: boom, limits: handler.Limits{Backoff: some(1500 * time.Millisecond)}, failed: true, want: Outcome{Message: "boom", Delay: some(1500 * time.Millisecond)}, log: "in 1.5 seconds"},
		"ignored":                   {err: boom, limits: mode(handler.Ignore), want: Outcome{Final: true}, log: "will ignore it: boom"},
		"failed":                    {err: boom, limits: mode(handler.Fail), failed: true, want: Outcome{Final: true, Message: "boom"}, log: "will stop now: boom"},
		"permanent":                 {err: &handler.PermanentError{Err: boom}, failed: true, want: Outcome{Final: true, Message: "boom"}, log: "level=ERROR msg=\"Handler 'h' failed permanently: boom\""},
		"temporary":                 {err: &handler.TemporaryError{Err: boom, Delay: some(5)}, failed: true, want: Outcome{Message: "boom", Delay: some(5)}, log: "level=ERROR msg=\"Handler 'h' failed temporarily: boom\""},
		"temporary without a text":  {err: &handler.TemporaryError{Err: errors.New("")}, failed: true, want: Outcome{Message: "None"}, log: "failed temporarily: None"},
		"waiting":                   {err: &handler.TemporaryError{Err: boom, Delay: some(5), Wait: true}, failed: true, want: Outcome{Message: "boom", Delay: some(5)}, log: "level=INFO msg=\"Handler 'h' is waiting: boom\""},
		"denied":                    {err: &handler.PermanentError{Err: &handler.DeniedError{Err: boom}}, failed: true, want: Outcome{Final: true, Message: "boom"}, log: "level=INFO msg=\"Handler 'h' failed permanently: boom\""},
		"undecodable":               {err: &handler.UndecodableError{Err: boom}, failed: true, want: Outcome{Void: true, Delay: some(time.Minute)}, log: "level=ERROR msg=\"Handler 'h' is not called, because the object does not fit its type: boom\""},
		"undecodable is a failure":  {err: &handler.UndecodableError{Err: boom}, limits: mode(handler.Fail), failed: true, want: Outcome{Final: true, Message: "boom"}, log: "failed permanently: boom"},

		"no retries left":                      {limits: limits(0, 2), retries: 2, failed: true, want: Outcome{Final: true, Message: "Handler 'h' has exceeded 2 retries."}, log: "level=ERROR"},
		"the last retry succeeds":              {limits: limits(0, 2), retries: 1, want: Outcome{Final: true, Result: "r"}, log: "succeeded"},
		"the last retry fails":                 {limits: limits(0, 2), retries: 1, err: boom, failed: true, want: Outcome{Final: true, Message: "Handler 'h' failed with an exception and will stop now (it would exceed 2 retries on the next attempt): boom"}, log: "level=ERROR"},
		"the last retry waits":                 {limits: limits(0, 2), retries: 1, err: &handler.TemporaryError{Err: boom, Wait: true}, failed: true, want: Outcome{Final: true, Message: "Handler 'h' is waiting but will exceed 2 retries: boom"}, log: "level=ERROR"},
		"the last retry fails temporarily":     {limits: limits(0, 2), retries: 1, err: &handler.TemporaryError{Err: boom}, failed: true, want: Outcome{Final: true, Message: "Handler 'h' failed temporarily but will exceed 2 retries: boom"}, log: "level=ERROR"},
		"one retry is left":                    {limits: limits(0, 3), retries: 1, err: boom, failed: true, want: Outcome{Message: "boom", Delay: some(time.Minute)}, log: "try again"},
		"no time left":                         {limits: limits(time.Hour, 0), age: time.Hour, failed: true, want: Outcome{Final: true, Message: "Handler 'h' has timed out after 1:00:00."}, log: "level=ERROR"},
		"no time left, with a fraction":        {limits: limits(time.Hour, 0), age: time.Hour + 61*time.Second + 5999*time.Nanosecond, failed: true, want: Outcome{Final: true, Message: "Handler 'h' has timed out after 1:01:01.000005."}, log: "level=ERROR"},
		"no time for the next attempt":         {limits: limits(time.Hour, 0), age: 59 * time.Minute, err: boom, failed: true, want: Outcome{Final: true, Message: "Handler 'h' failed with an exception and will stop now (it would time out in 3600 seconds on the next attempt): boom"}, log: "level=ERROR"},
		"just enough time for the next":        {limits: limits(time.Hour, 0), age: 59*time.Minute - 1, err: boom, failed: true, want: Outcome{Message: "boom", Delay: some(time.Minute)}, log: "try again"},
		"just enough time, without a delay":    {limits: limits(time.Hour, 0), age: time.Hour - 1, err: &handler.TemporaryError{Err: boom}, failed: true, want: Outcome{Message: "boom"}, log: "failed temporarily"},
		"no time for the next, by a temporary": {limits: limits(time.Hour, 0), age: 59 * time.Minute, err: &handler.TemporaryError{Err: boom, Delay: some(time.Minute)}, failed: true, want: Outcome{Final: true, Message: "Handler 'h' failed temporarily but will time out after 3600 seconds: boom"}, log: "level=ERROR"},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var log bytes.Buffer
				var observed []string
				got := Attempt{
					Title: "Handler", ID: "h", Limits: c.limits, Retries: c.retries, Started: time.Now().Add(-c.age),
					DefaultBackoff: time.Minute, DefaultMode: handler.Retry, Log: printed(&log),
					Observe: func(id string, _ Outcome, took time.Duration) { observed = append(observed, id+" "+took.String()) },
					Call:    func(context.Context) (any, error) { time.Sleep(0); return "r", c.err },
				}.Make(t.Context())
				if (got.Err != nil) != c.failed || (got.Ignored != nil) != strings.Contains(log.String(), "ignore") {
					t.Errorf("errors: got %v and %v", got.Err, got.Ignored)
				}
				if got.Final != c.want.Final || got.Message != c.want.Message || got.Delay != c.want.Delay || got.Void != c.want.Void || got.Result != c.want.Result || got.Waited != 0 {
					t.Errorf("got %+v, want %+v", got, c.want)
				}
				if !strings.Contains(log.String(), c.log) || !strings.Contains(log.String(), "handler=h") {
					t.Errorf("got the lines %s, want %s", log.String(), c.log)
				}
				called := !errors.Is(got.Err, ErrTimeout) && !errors.Is(got.Err, ErrRetries) || strings.Contains(got.Message, "will")
				if called != (len(observed) == 1 && observed[0] == "h 0s") {
					t.Errorf("observed %q", observed)
				}
			})
		})
	}
}

func TestAHandlerRunsUnderItsDeadline(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start := time.Now()
		outcome := Attempt{
			Title: "Handler", ID: "h", Limits: handler.Limits{Timeout: some(10 * time.Second)}, Started: start.Add(-4 * time.Second),
			DefaultBackoff: time.Minute, Log: slog.New(slog.DiscardHandler),
			Call: func(ctx context.Context) (any, error) { <-ctx.Done(); return nil, context.Cause(ctx) },
		}.Make(t.Context())
		if took := time.Since(start); took != 6*time.Second || !errors.Is(outcome.Err, ErrTimeout) || !outcome.Final {
			t.Errorf("after %s: got %+v", took, outcome)
		}
	})
}

func TestAPanicIsAnErrorWithItsStack(t *testing.T) {
	var log bytes.Buffer
	outcome := Attempt{
		Title: "Handler", ID: "h", DefaultBackoff: time.Minute, DefaultMode: handler.Retry, Log: printed(&log), Started: time.Now(),
		Call: func(context.Context) (any, error) { panic("oops") },
	}.Make(t.Context())
	if outcome.Final || outcome.Message != "panic: oops" || !strings.Contains(log.String(), "stack=") || !strings.Contains(log.String(), "attempt_test.go") {
		t.Errorf("got %+v, and the lines %s", outcome, log.String())
	}
}

func TestAnErrorDuringShutdownIsNotAnAttempt(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(ErrStopping)
	var log bytes.Buffer
	attempt := func(err error) Outcome {
		return Attempt{
			Title: "Handler", ID: "h", Log: printed(&log), Started: time.Now(),
			Call: func(context.Context) (any, error) { return nil, err },
		}.Make(ctx)
	}
	if o := attempt(context.Canceled); !o.Void || o.Final || !strings.Contains(log.String(), "level=WARN msg=\"Handler 'h' is interrupted by the stop") {
		t.Errorf("with an error: got %+v, and the lines %s", o, log.String())
	}
	if o := attempt(nil); o.Void || !o.Final {
		t.Errorf("without an error: got %+v", o)
	}
}

func TestLongErrorTextsAreCutAtCharacters(t *testing.T) {
	exact := strings.Repeat("ж", longest)
	if got := cut(exact); got != exact {
		t.Errorf("a text of the maximum length is cut to %d bytes", len(got))
	}
	if got := cut(exact + "ж"); got != strings.Repeat("ж", longest-1)+"…" {
		t.Errorf("got %d characters", len([]rune(got)))
	}
	if got := text(errors.New("")); got != "*errors.errorString" {
		t.Errorf("an error without a text is shown as %q", got)
	}
}

func TestASuccessThatChangedNothingIsLoggedAtDebug(t *testing.T) {
	for result, want := range map[string]string{"quiet": "", "loud": "level=INFO msg=\"Handler 'h' succeeded.\" handler=h\n"} {
		var log bytes.Buffer
		Attempt{
			Title: "Handler", ID: "h", Log: printed(&log), Started: time.Now(), Quiet: func(result any) bool { return result == "quiet" },
			Call: func(context.Context) (any, error) { return result, nil },
		}.Make(t.Context())
		if log.String() != want {
			t.Errorf("%s: got the lines %q, want %q", result, log.String(), want)
		}
	}
}

func TestTheOutcomeIsLoggedWithTheLoggerOfTheCall(t *testing.T) {
	var log bytes.Buffer
	own := printed(&log)
	a := Attempt{Title: "Handler", ID: "h", Log: own, Own: &own, Started: time.Now()}
	a.Call = func(context.Context) (any, error) {
		own = own.With("trace", "t1")
		return nil, nil
	}
	a.Make(t.Context())
	a.Refused(&handler.PermanentError{Err: errors.New("boom")})
	want := "level=INFO msg=\"Handler 'h' succeeded.\" trace=t1 handler=h\n" +
		"level=ERROR msg=\"Handler 'h' failed permanently: boom\" trace=t1 handler=h\n"
	if log.String() != want {
		t.Errorf("got %q\nwant %q", log.String(), want)
	}
}

func TestAKnownMisfitIsLoggedAtDebug(t *testing.T) {
	for known, want := range map[bool]string{false: "level=ERROR", true: "level=DEBUG"} {
		var log bytes.Buffer
		var asked error
		boom := &handler.UndecodableError{Err: errors.New("boom")}
		Attempt{
			Title: "Handler", ID: "h", DefaultMode: handler.Retry,
			Log:   slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelDebug})),
			Call:  func(context.Context) (any, error) { return nil, boom },
			Known: func(err *handler.UndecodableError) bool { asked = err; return known },
		}.Make(t.Context())
		line := want + ` msg="Handler 'h' is not called, because the object does not fit its type: boom"`
		if !strings.Contains(log.String(), line) || !errors.Is(asked, boom) {
			t.Errorf("known %v: got %s, asked about %v", known, log.String(), asked)
		}
	}
}

func TestMissingObjectsAndConflictsAreRetriedSoon(t *testing.T) {
	pods := schema.GroupResource{Resource: "pods"}
	missing := fmt.Errorf("read the pod: %w", apierrors.NewNotFound(pods, "web-0"))
	for name, c := range map[string]struct {
		err     error
		retries int
		limits  handler.Limits
		want    time.Duration
	}{
		"missing, first attempt":     {missing, 0, handler.Limits{}, time.Second},
		"missing, second attempt":    {missing, 1, handler.Limits{}, 2 * time.Second},
		"missing, fifth attempt":     {missing, 4, handler.Limits{}, 16 * time.Second},
		"missing, up to the default": {missing, 6, handler.Limits{}, time.Minute},
		"missing, many attempts":     {missing, 1_000_000, handler.Limits{}, time.Minute},
		"a conflict":                 {apierrors.NewConflict(pods, "web-0", errors.New("changed")), 0, handler.Limits{}, time.Second},
		"forbidden":                  {apierrors.NewForbidden(pods, "web-0", errors.New("no")), 0, handler.Limits{}, time.Minute},
		"with a declared backoff":    {missing, 0, handler.Limits{Backoff: some(5 * time.Minute)}, 5 * time.Minute},
	} {
		got := Attempt{
			Title: "Handler", ID: "h", Limits: c.limits, Retries: c.retries, Started: time.Now(), DefaultBackoff: time.Minute,
			Log: slog.New(slog.DiscardHandler), Call: func(context.Context) (any, error) { return nil, c.err },
		}.Make(t.Context())
		if got.Delay != some(c.want) || got.Final {
			t.Errorf("%s: got %+v", name, got)
		}
	}
}
