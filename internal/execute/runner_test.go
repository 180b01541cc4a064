package execute

import (
	"context"
	"errors"
	"log/slog"
	"reflect"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

func everything(due []handler.Due) []handler.Due { return due }

// newRunner returns a runner with the creation handlers selected.
func newRunner(handlers handler.Set) *Runner {
	state := progress.New(nil)
	state.Select(handlers.IDs(), cause.Create, time.Now())
	return &Runner{
		Reason: cause.Create, Lifecycle: everything, DefaultBackoff: time.Minute, Log: slog.New(slog.DiscardHandler), State: state,
		Load: func(context.Context, []string) (map[string]storage.Record, error) { return nil, nil },
		Request: func() *handler.Request {
			return &handler.Request{Cause: &cause.Cause{Reason: cause.Create}, Key: func() string { return "key" }, Post: func(string, string, string) {}}
		},
	}
}

func newHandler(id string, call func(context.Context, *handler.Request) error) *handler.Handler {
	return &handler.Handler{ID: id, Call: call}
}

func asking(id string, err error) *handler.Handler {
	return newHandler(id, func(_ context.Context, r *handler.Request) error {
		r.Patch.Set(r.Handler.ID, "spec", "by")
		r.Result = map[string]any{"of": id}
		return err
	})
}

func TestAPassCallsTheHandlersThatTheLifecycleChooses(t *testing.T) {
	var calls []string
	note := func(_ context.Context, r *handler.Request) error {
		calls = append(calls, r.Handler.ID+" "+r.Key())
		return nil
	}
	handlers := handler.Set{newHandler("a", note), newHandler("b", note), newHandler("c", note)}
	r := newRunner(handlers)
	r.Lifecycle = func(due []handler.Due) []handler.Due {
		return []handler.Due{{ID: "unknown"}, due[2], due[0]}
	}
	if err := r.Pass(t.Context(), handlers); err != nil {
		t.Fatal(err)
	}
	if want := []string{"c key/c", "a key/a"}; !slices.Equal(calls, want) {
		t.Errorf("called %q, want %q", calls, want)
	}
	if got := r.Finished(); r.Ran() != 2 || !slices.Equal(got, []string{"c", "a"}) {
		t.Errorf("%d ran, and %q are finished", r.Ran(), got)
	}
	canceled, cancel := context.WithCancel(t.Context())
	cancel()
	r.Lifecycle = everything
	if err := r.Pass(canceled, handlers); err != nil || r.Ran() != 2 {
		t.Errorf("after the context was canceled: %d ran, %v", r.Ran(), err)
	}
}

func TestDelayedHandlersAreCalledWhenTheyAreUrgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		handlers := handler.Set{asking("a", &handler.TemporaryError{Err: errors.New("x"), Delay: handler.Some(time.Hour)})}
		r := newRunner(handlers)
		for i, c := range []struct {
			urgent bool
			ran    int
		}{{false, 1}, {false, 1}, {true, 2}} {
			r.Urgent = func(id string) bool { return c.urgent && id == "a" }
			if err := r.Pass(t.Context(), handlers); err != nil || r.Ran() != c.ran {
				t.Errorf("pass %d: %d ran in all, want %d; %v", i, r.Ran(), c.ran, err)
			}
		}
		if record := r.State.Record("a"); record.Retries != 2 || recorded(record) != "x" {
			t.Errorf("got %+v", record)
		}
	})
}

func TestPartsAreInTheOrderOfDeclarationWithSubHandlersFirst(t *testing.T) {
	parent := newHandler("p", func(ctx context.Context, r *handler.Request) error {
		r.Patch.Set("p", "spec", "by")
		return r.RunSubs(ctx, []*handler.Handler{asking("p/s", nil)}, handler.SubOptions{})
	})
	silent := newHandler("silent", func(context.Context, *handler.Request) error { return nil })
	failing := asking("z", errors.New("x"))
	declared := handler.Set{silent, failing, parent, asking("a", nil)}
	r := newRunner(declared)
	r.Lifecycle = func(due []handler.Due) []handler.Due { slices.Reverse(due); return due }
	if err := r.Pass(t.Context(), declared); err != nil {
		t.Fatal(err)
	}
	type part struct {
		id     string
		fields map[string]any
	}
	var got []part
	for _, p := range r.Parts(declared) {
		got = append(got, part{p.Handler, p.Patch.Fields()})
	}
	by := func(id string) map[string]any { return map[string]any{"by": id} }
	want := []part{
		{"z", map[string]any{"spec": by("z")}}, // the handler failed, so its result is dropped
		{"p/s", map[string]any{"spec": by("p/s"), "status": map[string]any{"p/s": map[string]any{"of": "p/s"}}}},
		{"p", map[string]any{"spec": by("p")}},
		{"a", map[string]any{"spec": by("a"), "status": map[string]any{"a": map[string]any{"of": "a"}}}},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got  %v\nwant %v", got, want)
	}
	if record := r.State.Record("p"); !record.Success || !slices.Equal(record.Subrefs, []string{"p/s"}) {
		t.Errorf("got %+v", record)
	}
}

func TestARefusedChangeFailsItsHandlerAndReopensItsParents(t *testing.T) {
	parent := newHandler("p", func(ctx context.Context, r *handler.Request) error {
		r.Result = "done"
		return r.RunSubs(ctx, []*handler.Handler{asking("p/s", nil), asking("p/t", nil)}, handler.SubOptions{})
	})
	declared := handler.Set{parent}
	r := newRunner(declared)
	if err := r.Pass(t.Context(), declared); err != nil || !r.State.Record("p").Success {
		t.Fatalf("got %+v, %v", r.State.Record("p"), err)
	}
	for _, p := range r.Parts(declared) {
		if p.Handler == "p/s" {
			p.Refuse(errors.New("refused"))
		}
	}
	if record := r.State.Record("p/s"); record.Finished() || record.Retries != 1 || recorded(record) != "refused" {
		t.Errorf("the sub-handler: got %+v", record)
	}
	if record := r.State.Record("p"); record.Finished() || record.Retries != 1 {
		t.Errorf("the parent: got %+v", record)
	}
	var left []string
	for _, p := range r.Parts(declared) {
		left = append(left, p.Handler)
	}
	if !slices.Equal(left, []string{"p/t"}) {
		t.Errorf("the changes of %q are left", left)
	}
}

func TestSubHandlersMayRunInParallel(t *testing.T) {
	for _, parallel := range []int{0, 1, 2} {
		synctest.Test(t, func(t *testing.T) {
			var running, most atomic.Int32
			slow := func(context.Context, *handler.Request) error {
				most.Store(max(most.Load(), running.Add(1)))
				time.Sleep(time.Second)
				running.Add(-1)
				return nil
			}
			subs := []*handler.Handler{newHandler("p/a", slow), newHandler("p/b", slow), newHandler("p/c", slow)}
			declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
				return r.RunSubs(ctx, subs, handler.SubOptions{Parallel: parallel})
			})}
			r := newRunner(declared)
			if err := r.Pass(t.Context(), declared); err != nil || r.Ran() != 4 || int(most.Load()) != max(1, parallel) {
				t.Errorf("parallel %d: %d ran, at most %d at the same time, %v", parallel, r.Ran(), most.Load(), err)
			}
		})
	}
}

func TestAParentWaitsForItsSubHandlers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		failure := &handler.TemporaryError{Err: errors.New("x"), Delay: handler.Some(5 * time.Second)}
		declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
			_ = r.RunSubs(ctx, []*handler.Handler{asking("p/a", failure), asking("p/b", nil)},
				handler.SubOptions{Lifecycle: func(due []handler.Due) []handler.Due { return due[:1] }})
			return errors.New("whatever it returns")
		})}
		r := newRunner(declared)
		if err := r.Pass(t.Context(), declared); err != nil {
			t.Fatal(err)
		}
		record := r.State.Record("p")
		if record.Finished() || !slices.Equal(record.Subrefs, []string{"p/a", "p/b"}) || recorded(record) != "None" {
			t.Errorf("got %+v", record)
		}
		if delay := r.State.Delay([]string{"p"}, time.Now()); delay.Is != 0 { // the other sub-handler is due
			t.Errorf("the parent waits for %v", delay)
		}
	})
}

// The records of sub-handlers can be found only through the record of their parent.
func TestAnInterruptedParentRefersToItsSubHandlers(t *testing.T) {
	ctx, stop := context.WithCancelCause(t.Context())
	inner := newHandler("p/a/b", func(context.Context, *handler.Request) error {
		stop(ErrStopping)
		return context.Canceled
	})
	declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
		return r.RunSubs(ctx, []*handler.Handler{newHandler("p/a", func(ctx context.Context, r *handler.Request) error {
			return r.RunSubs(ctx, []*handler.Handler{inner}, handler.SubOptions{})
		})}, handler.SubOptions{})
	})}
	r := newRunner(declared)
	if err := r.Pass(ctx, declared); err != nil {
		t.Fatal(err)
	}
	record := r.State.Record("p")
	if record.Finished() || record.Retries != 0 || !slices.Equal(record.Subrefs, []string{"p/a", "p/a/b"}) {
		t.Errorf("got %+v", record)
	}
}

func TestSubHandlersThatAreUpToDateAreNotCalled(t *testing.T) {
	declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
		return r.RunSubs(ctx, []*handler.Handler{asking("p/a", nil), asking("p/b", nil)}, handler.SubOptions{})
	})}
	r := newRunner(declared)
	top := &cause.Cause{Reason: cause.Create}
	r.Cause = func(id string, parent *cause.Cause) *cause.Cause {
		if (parent == top) != (id != "p") {
			t.Errorf("the cause of %s is requested with the parent %v", id, parent)
		}
		switch id {
		case "p":
			return top
		case "p/a":
			return &cause.Cause{Reason: cause.Noop}
		}
		return &cause.Cause{Reason: cause.Update}
	}
	if err := r.Pass(t.Context(), declared); err != nil || !slices.Equal(r.Finished(), []string{"p/b", "p"}) {
		t.Errorf("got %q, %v", r.Finished(), err)
	}
}

func TestAPassFailsIfSubHandlersCannotBeLoaded(t *testing.T) {
	down := errors.New("the storage is down")
	declared := handler.Set{newHandler("p", func(ctx context.Context, r *handler.Request) error {
		return r.RunSubs(ctx, []*handler.Handler{asking("p/a", nil)}, handler.SubOptions{})
	})}
	r := newRunner(declared)
	r.Load = func(context.Context, []string) (map[string]storage.Record, error) { return nil, down }
	if err := r.Pass(t.Context(), declared); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
	if record := r.State.Record("p"); record.Retries != 0 || record.Finished() {
		t.Errorf("an attempt is counted: %+v", record)
	}
}

func TestResultsAreDeliveredToTheStatus(t *testing.T) {
	for name, c := range map[string]struct{ result, want any }{
		"a value":         {"v", map[string]any{"status": map[string]any{"id": "v"}}},
		"fields":          {map[string]any{"a": 1, "b": 2}, map[string]any{"status": map[string]any{"id": map[string]any{"a": 1, "b": 2}}}},
		"an empty object": {map[string]any{}, map[string]any{"status": map[string]any{"id": map[string]any{}}}},
	} {
		var p patch.Patch
		Deliver(&p, "id", c.result)
		if !reflect.DeepEqual(any(p.Fields()), c.want) {
			t.Errorf("%s: got %v", name, p.Fields())
		}
	}
	var twice patch.Patch
	Deliver(&twice, "id", map[string]any{"a": 1, "b": 1})
	Deliver(&twice, "id", map[string]any{"b": 2})
	if want := map[string]any{"status": map[string]any{"id": map[string]any{"a": 1, "b": 2}}}; !reflect.DeepEqual(twice.Fields(), want) {
		t.Errorf("results of two calls: got %v, want %v", twice.Fields(), want)
	}
	if v, err := ToJSON(nil); v != nil || err != nil {
		t.Errorf("nothing: got %v, %v", v, err)
	}
	if v, err := ToJSON(struct{ A int }{1}); err != nil || !reflect.DeepEqual(v, map[string]any{"A": int64(1)}) {
		t.Errorf("got %v, %v", v, err)
	}
	if _, err := ToJSON(func() {}); !errors.As(err, new(*handler.PermanentError)) {
		t.Errorf("a function: got %v", err)
	}
}

// recorded returns the message of a record.
func recorded(r storage.Record) string {
	if r.Message == nil {
		return ""
	}
	return *r.Message
}

func TestWaitingDoesNotCountForTheTimeout(t *testing.T) {
	for _, timeout := range []handler.Opt[time.Duration]{{}, some(time.Minute)} {
		synctest.Test(t, func(t *testing.T) {
			start := time.Now()
			h := asking("a", nil)
			h.Limits.Timeout = timeout
			r := newRunner(handler.Set{h})
			r.Entrance = &Entrance{Open: func() bool { return time.Since(start) >= 5*time.Second }}
			if err := r.Pass(t.Context(), handler.Set{h}); err != nil {
				t.Fatal(err)
			}
			shifted := r.State.Record("a").Started.Sub(start)
			if (shifted >= 5*time.Second) != timeout.Set || !timeout.Set && shifted != 0 {
				t.Errorf("with the timeout %v, the start is shifted by %s", timeout, shifted)
			}
		})
	}
}

func TestAnUndecodableObjectIsReportedAsAnEvent(t *testing.T) {
	h := asking("a", &handler.UndecodableError{Err: errors.New("spec.size is a text")})
	r := newRunner(handler.Set{h})
	posted := posting(r)
	if err := r.Pass(t.Context(), handler.Set{h}); err != nil {
		t.Fatal(err)
	}
	if want := []string{"Warning Undecodable The object does not fit the handler 'a': spec.size is a text"}; !slices.Equal(*posted, want) {
		t.Errorf("got %q", *posted)
	}
	if record := r.State.Record("a"); record.Retries != 0 || len(r.State.Due([]string{"a"}, time.Now())) != 0 {
		t.Errorf("the attempt counts, or the handler is due at once: %+v", record)
	}
}

// posting lets the runner collect the Kubernetes events.
func posting(r *Runner) *[]string {
	var posted []string
	request := r.Request
	r.Request = func() *handler.Request {
		req := request()
		req.Post = func(kind, reason, message string) { posted = append(posted, kind+" "+reason+" "+message) }
		return req
	}
	return &posted
}

func TestOtherErrorsAreNotReportedAsUndecodable(t *testing.T) {
	failing := asking("failing", &handler.UndecodableError{Err: errors.New("x")})
	failing.Limits.OnError = handler.Some(handler.Fail) // a failure is recorded
	for name, h := range map[string]*handler.Handler{"a failure": failing, "an interruption": asking("interrupted", context.Canceled)} {
		ctx, cancel := context.WithCancelCause(t.Context())
		r := newRunner(handler.Set{h})
		call := h.Call
		h.Call = func(ctx context.Context, req *handler.Request) error {
			if h != failing {
				cancel(ErrStopping)
			}
			return call(ctx, req)
		}
		posted := posting(r)
		if err := r.Pass(ctx, handler.Set{h}); err != nil || len(*posted) != 0 || r.State.Record(h.ID).Finished() != (h == failing) {
			t.Errorf("%s: posted %q, recorded %+v, %v", name, *posted, r.State.Record(h.ID), err)
		}
		cancel(nil)
	}
}
