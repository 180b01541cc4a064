package index

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// script is an index function with scripted results.
type script struct {
	t       *testing.T
	index   *Index[string, string]
	handler *handler.Handler
	all     *Indexers
	log     *bytes.Buffer

	result  map[string]string
	err     error
	matches bool
	calls   int
	last    *handler.Request
}

func newScript(t *testing.T, limits handler.Limits) *script {
	s := &script{t: t, index: New[string, string](), matches: true, log: &bytes.Buffer{}}
	s.handler = &handler.Handler{
		ID: "fn", Limits: limits,
		When: []func(*handler.Request) bool{func(*handler.Request) bool { return s.matches }},
		Call: func(_ context.Context, req *handler.Request) error {
			s.calls++
			s.last = req
			if s.err == nil {
				req.Result = s.result
			}
			return s.err
		},
	}
	s.all = &Indexers{Functions: []Function{{s.handler, s.index}}, DefaultBackoff: time.Minute}
	return s
}

// event sends an event of the object, for which the function returns the given result.
func (s *script) event(ctx context.Context, uid string, result map[string]string, err error) {
	s.t.Helper()
	body, parseErr := object.Parse([]byte(`{"metadata":{"uid":"` + uid + `","namespace":"ns","name":"n"}}`))
	if parseErr != nil {
		s.t.Fatal(parseErr)
	}
	s.result, s.err = result, err
	log := slog.New(slog.NewTextHandler(s.log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	s.all.Update(ctx, func() *handler.Request {
		return &handler.Request{Body: body, Log: log, Patch: &patch.Patch{}}
	})
}

// expect checks the values under the only key, and the number of calls since the last
// check.
func (s *script) expect(calls int, values ...string) {
	s.t.Helper()
	want := map[string][]string{}
	if len(values) > 0 {
		want["key"] = values
	}
	check(s.t, s.index, want)
	if s.calls != calls {
		s.t.Errorf("%d calls, want %d", s.calls, calls)
	}
	s.calls = 0
}

func TestResultsReplaceTheValuesOfTheirObject(t *testing.T) {
	s, ctx := newScript(t, handler.Limits{}), t.Context()
	s.event(ctx, "a", one("a1"), nil)
	s.event(ctx, "b", one("b1"), nil)
	s.expect(2, "a1", "b1")
	s.event(ctx, "a", one("a2"), nil)
	s.expect(1, "a2", "b1")
	s.event(ctx, "a", nil, Keep)
	s.expect(1, "a2", "b1")
	s.event(ctx, "a", nil, nil)
	s.expect(1, "b1")
	s.event(ctx, "b", one("b1"), errors.New("ignored by default"))
	s.expect(1, "b1")
	s.matches = false
	s.event(ctx, "b", one("b2"), nil)
	s.expect(0)
}

func TestKeepIsNotAFailureInAnyErrorMode(t *testing.T) {
	for _, mode := range []handler.ErrorMode{handler.Retry, handler.Ignore, handler.Fail} {
		s, ctx := newScript(t, handler.Limits{OnError: handler.Some(mode), Retries: handler.Some(1)}), t.Context()
		s.event(ctx, "a", one("a1"), nil)
		s.event(ctx, "a", nil, Keep)
		s.event(ctx, "a", nil, Keep)
		s.expect(3, "a1")
		if s.all.Failing() != 0 || strings.Contains(s.log.String(), "failed") {
			t.Errorf("keeping counted as a failure:\n%s", s.log)
		}
	}
}

func TestADeletedObjectIsRemovedWithoutACall(t *testing.T) {
	s, ctx := newScript(t, handler.Limits{}), t.Context()
	s.event(ctx, "a", one("a1"), nil)
	s.event(ctx, "b", nil, &handler.PermanentError{Err: errors.New("oops")})
	s.expect(2, "a1")
	s.all.Remove("a")
	s.all.Remove("b")
	s.all.Remove("unknown")
	s.expect(0)
	if s.all.Failing() != 0 {
		t.Error("the failures of a deleted object are still remembered")
	}
}

func TestATemporaryErrorExcludesUntilAnEventAfterItsDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, ctx := newScript(t, handler.Limits{}), t.Context()
		s.event(ctx, "a", one("a1"), nil)
		s.event(ctx, "a", nil, &handler.TemporaryError{Err: errors.New("oops"), Delay: handler.Some(10 * time.Second)})
		s.expect(2)
		first := s.last.Started
		time.Sleep(10*time.Second - 1)
		s.event(ctx, "a", one("a2"), nil)
		s.expect(0)
		time.Sleep(time.Hour)
		synctest.Wait()
		s.expect(0) // it is called only for events
		s.event(ctx, "a", nil, &handler.TemporaryError{Err: errors.New("again")})
		s.expect(1)
		if s.last.Retry != 1 || !s.last.Started.Equal(first) {
			t.Errorf("retry %d since %s, want 1 since %s", s.last.Retry, s.last.Started, first)
		}
		s.event(ctx, "a", one("a3"), nil)
		s.expect(1, "a3")
		if s.all.Failing() != 0 {
			t.Error("a success did not reset the failures")
		}
		s.event(ctx, "a", one("a4"), nil)
		if s.expect(1, "a4"); s.last.Retry != 0 {
			t.Errorf("retry %d after a success, want 0", s.last.Retry)
		}
	})
}

func TestAPermanentErrorExcludesForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		cases := map[string]struct {
			limits handler.Limits
			err    error
			calls  int // until the failure is final
		}{
			"permanent error":     {handler.Limits{}, &handler.PermanentError{Err: errors.New("oops")}, 1},
			"error mode":          {handler.Limits{OnError: handler.Some(handler.Fail)}, errors.New("oops"), 1},
			"undecodable object":  {handler.Limits{OnError: handler.Some(handler.Fail)}, &handler.UndecodableError{Err: errors.New("oops")}, 1},
			"no retries left":     {handler.Limits{Retries: handler.Some(2)}, &handler.TemporaryError{Err: errors.New("oops")}, 2},
			"no time left":        {handler.Limits{Timeout: handler.Some(3 * time.Hour)}, &handler.TemporaryError{Err: errors.New("oops")}, 3},
			"no retries, by mode": {handler.Limits{Retries: handler.Some(2), OnError: handler.Some(handler.Retry)}, errors.New("oops"), 2},
		}
		for name, c := range cases {
			s, ctx := newScript(t, c.limits), t.Context()
			s.event(ctx, "other", one("other"), nil)
			s.event(ctx, "a", one("a1"), nil)
			s.calls = 0
			for range 5 {
				s.event(ctx, "a", nil, c.err)
				time.Sleep(time.Hour)
			}
			s.matches = false
			s.event(ctx, "a", one("a2"), nil) // not even if the filters match again
			s.matches = true
			s.event(ctx, "a", one("a2"), nil)
			t.Log(name)
			s.expect(c.calls, "other")
			s.event(ctx, "other", one("other"), nil)
			s.expect(1, "other")
		}
	})
}

func TestUndecodableObjectsAreErrorsButRetriedWithEachEvent(t *testing.T) {
	misfit := &handler.UndecodableError{Err: errors.New("oops")}
	ignoring, ctx := newScript(t, handler.Limits{}), t.Context()
	ignoring.event(ctx, "a", one("a1"), nil)
	ignoring.event(ctx, "a", nil, misfit)
	ignoring.expect(2, "a1")
	retrying := newScript(t, handler.Limits{OnError: handler.Some(handler.Retry)})
	retrying.event(ctx, "a", one("a1"), nil)
	retrying.event(ctx, "a", nil, misfit)
	retrying.expect(2)
	retrying.event(ctx, "a", one("a2"), nil)
	retrying.expect(1, "a2")
	if ignoring.all.Failing()+retrying.all.Failing() != 0 {
		t.Error("an uncounted attempt is remembered")
	}
}

func TestAnInterruptedFunctionKeepsTheValues(t *testing.T) {
	s := newScript(t, handler.Limits{})
	s.event(t.Context(), "a", one("a1"), nil)
	ctx, stop := context.WithCancelCause(t.Context())
	s.handler.When = append(s.handler.When, func(*handler.Request) bool { stop(execute.ErrStopping); return true })
	s.event(ctx, "a", nil, &handler.TemporaryError{Err: errors.New("cancelled")})
	s.expect(2, "a1")
	s.event(ctx, "a", one("a2"), nil)
	s.expect(0, "a1") // ctx has ended: no function is called
}

func TestPanicsOfFunctionsAreErrors(t *testing.T) {
	s, ctx := newScript(t, handler.Limits{}), t.Context()
	s.event(ctx, "a", one("a1"), nil)
	call := s.handler.Call
	s.handler.Call = func(ctx context.Context, req *handler.Request) error { _ = call(ctx, req); panic("oops") }
	s.event(ctx, "a", one("a2"), nil)
	s.expect(2, "a1")
}

func TestIndexersAreLoggedTersely(t *testing.T) {
	s, ctx := newScript(t, handler.Limits{}), t.Context()
	s.event(ctx, "a", one("a1"), nil)
	s.event(ctx, "a", nil, errors.New("oops"))
	s.last.Log.Info("the user's own line")
	log := s.log.String()
	for _, want := range []string{
		`level=DEBUG msg="Indexer 'fn' succeeded."`,
		`level=ERROR msg="Indexer 'fn' failed with an exception and will ignore it: oops"`,
		`level=INFO msg="the user's own line"`,
	} {
		if !strings.Contains(log, want) {
			t.Errorf("the log lacks %s:\n%s", want, log)
		}
	}
	if strings.Contains(log, "invoked") {
		t.Errorf("the log has too many lines:\n%s", log)
	}
}
