package gopftest

import (
	"context"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// ChangeCall is a call of a handler of changes.
type ChangeCall[T gopf.Object] struct {
	*gopf.Change[T]
	*Call[T]
}

// Change makes the argument of a handler of changes for an object, which is created
// in the cluster unless it is there. The handler can be called with it directly, or
// by Run:
//
//	call := gopftest.Change(t, cluster, database)
//	if err := createDatabase(t.Context(), call.Change); err != nil { … }
//	after := call.Apply()
//
// Calls for the same object share its memos.
func Change[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *ChangeCall[T] {
	t.Helper()
	call, o := newCall(t, c, obj, opts)
	call.req.Cause = call.causeOf(o)
	call.req.RunSubs = call.runSubs
	arg, err := gopf.TestArguments[T]{}.Change(call.req)
	if err != nil {
		t.Fatal(err)
	}
	return &ChangeCall[T]{arg, call}
}

// Run calls a handler as the operator does: its sub-handlers are run, too, a panic
// is an error, and what it asked for is written. The result is written only if
// there is no error. It returns what the handler returned.
func (c *ChangeCall[T]) Run(fn gopf.ChangeFunc[T]) error {
	c.t.Helper()
	err := protect(func() error { return gopf.TestArguments[T]{}.Handler(fn)(c.t.Context(), c.req) })
	if err != nil {
		c.req.Result = nil
	}
	c.Apply()
	return plain(err)
}

// plain is the error as the handler returned it.
func plain(err error) error {
	switch e := err.(type) {
	case *registry.TemporaryError:
		return e.Err
	case *registry.PermanentError:
		return e.Err
	case *registry.DeniedError:
		return &gopf.AdmissionError{Message: e.Error(), Code: e.Code}
	}
	return err
}

// runSubs runs sub-handlers once, without any memory of earlier attempts.
func (c *Call[T]) runSubs(ctx context.Context, subs []*registry.Handler, how registry.SubOptions) error {
	lifecycle := how.Lifecycle
	if lifecycle == nil {
		lifecycle = func(due []registry.Due) []registry.Due { return due }
	}
	state := progress.New(nil)
	runner := &execute.Runner{
		Reason: c.req.Cause.Reason, Lifecycle: lifecycle, DefaultBackoff: time.Minute, Log: c.req.Log,
		State: state,
		Load:  func(context.Context, []string) (map[string]storage.Record, error) { return nil, nil },
		Request: func() *registry.Request {
			sub := *c.req
			sub.Patch, sub.Result = &patch.Patch{}, nil
			return &sub
		},
	}
	var ids []string
	for _, h := range subs {
		ids = append(ids, h.ID)
	}
	state.Select(ids, c.req.Cause.Reason, time.Now())
	if err := runner.Pass(ctx, subs); err != nil {
		return err
	}
	for _, part := range runner.Parts(subs) {
		c.req.Patch.Absorb(&part.Patch)
	}
	if delay := state.Delay(ids, time.Now()); delay.Set {
		return &registry.UnfinishedError{Delay: delay.Is}
	}
	return nil
}

// EventCall is a call of a handler of events.
type EventCall[T gopf.Object] struct {
	*gopf.Event[T]
	*Call[T]
}

// Event makes the argument of a handler of events: "ADDED", "MODIFIED", "DELETED",
// or "" for an object that was found in a listing. See [Change].
func Event[T gopf.Object](t testing.TB, c *Cluster, eventType string, obj T, opts ...CallOption) *EventCall[T] {
	t.Helper()
	call, _ := newCall(t, c, obj, opts)
	call.req.Event = eventType
	arg, err := gopf.TestArguments[T]{}.Event(call.req)
	if err != nil {
		t.Fatal(err)
	}
	return &EventCall[T]{arg, call}
}

// SubjectCall is a call of a function that is told about an object as it is.
type SubjectCall[T gopf.Object] struct {
	*gopf.Subject[T]
	*Call[T]
}

// Subject makes the argument of filters, index functions and the like; see
// [Change].
func Subject[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *SubjectCall[T] {
	t.Helper()
	call, _ := newCall(t, c, obj, opts)
	arg, err := gopf.TestArguments[T]{}.Subject(call.req)
	if err != nil {
		t.Fatal(err)
	}
	return &SubjectCall[T]{arg, call}
}
