package gopftest

import (
	"context"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// ChangeCall is one call of a change handler in a test; see [Change].
type ChangeCall[T gopf.Object] struct {
	*gopf.Change[T]
	*Call[T]
}

// Change returns the argument for one call of a change handler: OnCreate, OnUpdate,
// OnDelete, OnResume or OnField. It creates obj in the cluster unless it exists there.
// Call the handler directly, or by Run:
//
//	call := gopftest.Change(t, cluster, database)
//	if err := createDatabase(t.Context(), call.Change); err != nil { … }
//	after := call.Apply()
//
// By default, the reason is Create; see [Because] and [Was]. Calls for the same object
// share its memos. The test fails if the cluster does not serve the kind of obj.
func Change[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *ChangeCall[T] {
	t.Helper()
	call, o := newCall(t, c, obj, opts)
	call.req.Cause = call.causeOf(o)
	call.resetSubs()
	arg, err := gopf.TestArguments[T]{}.Change(call.req)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &ChangeCall[T]{arg, call}
}

// Run calls a handler as the operator does: it also runs the sub-handlers, turns a
// panic into an error, and writes the handler's changes. It writes the result only if
// the handler succeeds. It returns the error of the handler.
func (c *ChangeCall[T]) Run(fn gopf.ChangeFunc[T]) error {
	c.t.Helper()
	c.resetSubs()
	err := protect(func() error { return gopf.TestArguments[T]{}.Handler(fn)(c.t.Context(), c.req) })
	if err != nil {
		c.req.Result = nil
	}
	c.Apply()
	return plain(err)
}

// plain returns the error in the form in which the handler returned it.
func plain(err error) error {
	switch e := err.(type) {
	case *handler.TemporaryError:
		return e.Err
	case *handler.PermanentError:
		return e.Err
	case *handler.DeniedError:
		return &gopf.AdmissionError{Message: e.Error(), Code: e.Code}
	}
	return err
}

// subCalls runs the sub-handlers of one call.
type subCalls struct {
	runner *execute.Runner
	parent *handler.Request // receives their changes
	sent   int              // the number of changes that it has received
}

// resetSubs makes the sub-handlers of the call run as if they were never tried before.
func (c *Call[T]) resetSubs() {
	subs := &subCalls{parent: c.req, runner: &execute.Runner{
		Reason: c.req.Cause.Reason, Lifecycle: func(due []handler.Due) []handler.Due { return due },
		DefaultBackoff: time.Minute, Log: c.req.Log, State: progress.New(nil),
		Load: func(context.Context, []string) (map[string]storage.Record, error) { return nil, nil },
		Request: func() *handler.Request {
			sub := *c.req
			sub.Patch, sub.Result = &patch.Patch{}, nil
			return &sub
		},
	}}
	c.req.RunSubs, c.req.SubOutcome = subs.run, subs.runner.SubOutcome
}

// run calls each sub-handler once, after those that it depends on.
func (s *subCalls) run(ctx context.Context, subs []*handler.Handler, how handler.SubOptions) error {
	var err error
	for range max(1, len(subs)) {
		err = s.runner.RunSubs(ctx, subs, how)
		unfinished, waits := err.(*handler.UnfinishedError)
		if !waits || unfinished.Delay > 0 || !staged(subs) {
			break
		}
	}
	parts := s.runner.Parts(subs)
	for _, part := range parts[s.sent:] {
		s.parent.Patch.Absorb(&part.Patch)
	}
	s.sent = len(parts)
	return err
}

// staged reports whether some of the sub-handlers wait for others.
func staged(subs []*handler.Handler) bool {
	return slices.ContainsFunc(subs, func(h *handler.Handler) bool { return h.Last || len(h.DependsOn) > 0 })
}

// EventCall is one call of an event handler in a test; see [Event].
type EventCall[T gopf.Object] struct {
	*gopf.WatchEvent[T]
	*Call[T]
}

// Event returns the argument for one call of an event handler; see [Change]. eventType
// is "ADDED", "MODIFIED" or "DELETED"; an empty eventType means a list item.
func Event[T gopf.Object](t testing.TB, c *Cluster, eventType string, obj T, opts ...CallOption) *EventCall[T] {
	t.Helper()
	call, _ := newCall(t, c, obj, opts)
	call.req.Event = eventType
	arg, err := gopf.TestArguments[T]{}.Event(call.req)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &EventCall[T]{arg, call}
}

// SubjectCall is one call of a function that takes a Subject; see [Subject].
type SubjectCall[T gopf.Object] struct {
	*gopf.Subject[T]
	*Call[T]
}

// Subject returns the argument for one call of a filter, an index function or another
// function that takes a Subject; see [Change].
func Subject[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *SubjectCall[T] {
	t.Helper()
	call, _ := newCall(t, c, obj, opts)
	arg, err := gopf.TestArguments[T]{}.Subject(call.req)
	if err != nil {
		t.Fatal(err)
	}
	return &SubjectCall[T]{arg, call}
}
