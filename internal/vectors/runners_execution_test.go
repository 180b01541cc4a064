package vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"regexp"
	"testing"
	"testing/synctest"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

type raised struct {
	Type  string
	Msg   string
	Delay json.RawMessage
}

// err is what a handler in Go returns for what one in Python raises.
func (r *raised) err() error {
	if r == nil {
		return nil
	}
	switch r.Type {
	case "Temporary":
		delay := handler.Some(60 * time.Second) // Kopf's default; ours is always given
		switch string(r.Delay) {
		case "":
		case "null":
			delay = handler.Opt[time.Duration]{}
		default:
			var seconds float64
			_ = json.Unmarshal(r.Delay, &seconds)
			delay.Is = time.Duration(seconds * float64(time.Second))
		}
		return &handler.TemporaryError{Err: errors.New(r.Msg), Delay: delay}
	case "Permanent":
		return &handler.PermanentError{Err: errors.New(r.Msg)}
	}
	return errors.New(r.Msg)
}

func executionOutcome(t *testing.T, v vector) {
	c := decode[struct {
		Handler        struct{ Errors, Timeout, Retries, Backoff any }
		DefaultErrors  string  `json:"default_errors"`
		DefaultBackoff float64 `json:"default_backoff"`
		State          struct {
			Runtime float64
			Retries int
		}
		Raises  *raised
		Returns any
		Invoked bool
		Outcome struct {
			Final     bool
			Delay     *float64
			Result    any
			Exception *string
			Message   *string
		}
		NextState json.RawMessage `json:"next_state"`
		Logs      [][2]string
	}](t, v.JSON)

	synctest.Test(t, func(t *testing.T) {
		start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		time.Sleep(time.Until(start))
		log := &attemptLines{}
		runtime := time.Duration(c.State.Runtime * float64(time.Second))
		state := progress.New(map[string]storage.Record{"fn": {
			Started: start.Add(-runtime), Retries: c.State.Retries, Purpose: "create",
		}})
		state.Select([]string{"fn"}, cause.Create, start)
		invoked := false
		h := &handler.Handler{ID: "fn", Limits: limitsOf(c.Handler.Timeout, c.Handler.Retries, c.Handler.Backoff, c.Handler.Errors)}
		outcome := execute.Attempt{
			Title: "Handler", ID: "fn", Limits: h.Limits, Retries: c.State.Retries, Started: start.Add(-runtime),
			DefaultBackoff: time.Duration(c.DefaultBackoff * float64(time.Second)), DefaultMode: modeOf(c.DefaultErrors),
			Log: slog.New(log),
			Call: func(context.Context) (any, error) {
				invoked = true
				return c.Returns, c.Raises.err()
			},
		}.Make(t.Context())

		if invoked != c.Invoked {
			t.Errorf("invoked: got %v, want %v", invoked, c.Invoked)
		}
		if outcome.Final != c.Outcome.Final || !diff.Equal(outcome.Result, c.Outcome.Result) || (outcome.Err != nil) != (c.Outcome.Exception != nil) {
			t.Errorf("outcome: got %+v, want %+v", outcome, c.Outcome)
		}
		if outcome.Delay.Set != (c.Outcome.Delay != nil) || outcome.Delay.Set && outcome.Delay.Is.Seconds() != *c.Outcome.Delay {
			t.Errorf("delay: got %+v, want %v", outcome.Delay, c.Outcome.Delay)
		}
		checkException(t, outcome.Err, c.Outcome.Exception)

		state.Attempted("fn", progress.Attempt{Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message, Delay: outcome.Delay}, start)
		var want storage.Record
		if err := json.Unmarshal(c.NextState, &want); err != nil {
			t.Fatal(err)
		}
		want.Delay = outcome.Delay.Or(0) // by rule 39; Kopf ignores it
		if got := state.Record("fn"); !got.Equal(want) {
			t.Errorf("record: got %s, want %s", got.Encode(true), want.Encode(true))
		}
		log.check(t, c.Logs)
	})
}

func checkException(t *testing.T, err error, want *string) {
	t.Helper()
	if want == nil {
		return
	}
	var timeout *execute.TimeoutError
	var retries *execute.RetriesError
	switch *want {
	case "HandlerTimeoutError":
		if !errors.As(err, &timeout) {
			t.Errorf("got %T, want a timeout", err)
		}
	case "HandlerRetriesError":
		if !errors.As(err, &retries) {
			t.Errorf("got %T, want an excess of retries", err)
		}
	}
}

func limitsOf(timeout, retries, backoff, mode any) (l handler.Limits) {
	seconds := func(v any) handler.Opt[time.Duration] {
		n, ok := v.(json.Number)
		if !ok {
			return handler.Opt[time.Duration]{}
		}
		f, _ := n.Float64()
		return handler.Some(time.Duration(f * float64(time.Second)))
	}
	l.Timeout, l.Backoff = seconds(timeout), seconds(backoff)
	if n, ok := retries.(json.Number); ok {
		i, _ := n.Int64()
		l.Retries = handler.Some(int(i))
	}
	if m, ok := mode.(string); ok {
		l.OnError = handler.Some(modeOf(m))
	}
	return l
}

func modeOf(name string) handler.ErrorMode {
	return map[string]handler.ErrorMode{
		"TEMPORARY": handler.Retry, "IGNORED": handler.Ignore, "PERMANENT": handler.Fail,
	}[name]
}

// attemptLines keeps log lines as vectors have them.
type attemptLines struct{ lines [][2]string }

func (r *attemptLines) Enabled(context.Context, slog.Level) bool { return true }
func (r *attemptLines) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r *attemptLines) WithGroup(string) slog.Handler            { return r }
func (r *attemptLines) Handle(_ context.Context, rec slog.Record) error {
	level := map[slog.Level]string{slog.LevelDebug: "DEBUG", slog.LevelInfo: "INFO", slog.LevelWarn: "WARNING", slog.LevelError: "ERROR"}[rec.Level]
	r.lines = append(r.lines, [2]string{level, rec.Message})
	return nil
}

// noText is an error without a text, which Python shows by its type.
var noText = regexp.MustCompile(`\b[A-Z]\w*\(''\)`)

// check compares the lines. An error without a text is shown by its type, which
// is another one in Python.
func (r *attemptLines) check(t *testing.T, want [][2]string) {
	t.Helper()
	same := len(r.lines) == len(want)
	for i := range want {
		if !same {
			break
		}
		expected := noText.ReplaceAllString(want[i][1], "*errors.errorString")
		same = r.lines[i][0] == want[i][0] && r.lines[i][1] == expected
	}
	if !same {
		t.Errorf("log lines: got %q, want %q", r.lines, want)
	}
}

func finalizerPatch(t *testing.T, v vector) {
	c := decode[struct {
		Fn, Finalizer string
		Body          map[string]any
		Ops           []any
	}](t, v.JSON)
	body, err := object.FromMap(c.Body)
	if err != nil {
		t.Fatal(err)
	}
	var ops []patch.Op
	if c.Fn == "block" {
		ops = patch.AddFinalizer(body.Finalizers(), c.Finalizer)
	} else {
		ops = patch.RemoveFinalizer(body.Finalizers(), c.Finalizer)
	}
	want, got := patched(t, body, c.Ops), patched(t, body, ops)
	// An empty list is as good as none, and no server has one: it is not worth
	// a request to drop it.
	if m := stringMap(got["metadata"]); len(ops) == 0 && m["finalizers"] != nil && len(body.Finalizers()) == 0 {
		delete(m, "finalizers")
	}
	if !diff.Equal(want, got) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// patched is the object after a JSON patch.
func patched(t *testing.T, body *object.Body, ops any) map[string]any {
	t.Helper()
	raw, err := json.Marshal(ops)
	if err != nil {
		t.Fatal(err)
	}
	p, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		t.Fatal(err)
	}
	after, err := p.Apply(body.Raw())
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return decode[map[string]any](t, after)
}
