// Package activity runs the handlers that belong to no object: those of the
// start, the end, logins and probes.
//
// Nothing of it is stored: an activity begins anew whenever it is run.
package activity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// Handler is one handler of an activity.
type Handler struct {
	ID     string
	Where  string // file:line of the declaration
	Limits registry.Limits
	Call   func(ctx context.Context, c Call) (result any, err error)
}

// Call is what a handler is told about the call.
type Call struct {
	Retry   int       // attempts made before
	Started time.Time // of the first attempt
}

// Config is an activity to be run.
type Config struct {
	Name     string // "startup", "cleanup", …: for errors
	Handlers []Handler

	// DefaultBackoff is the pause after errors that are neither temporary nor
	// permanent, for handlers that set none.
	DefaultBackoff time.Duration

	Log     *slog.Logger
	Observe execute.Observer // nil for nobody
}

// Run calls all handlers, one after another in their order, and those that
// must be called again when their time has come, until all are finished.
// Unless a handler says otherwise, it is retried after errors for ever.
//
// The results are those that are not nil, by the ids of the handlers, also if
// there is an error: a [FailedError] if handlers have failed for good, after
// all others finished; an [UnfinishedError] as soon as ctx has ended, though
// a running handler is waited for. An attempt that was cut short by that does
// not count as failed.
func Run(ctx context.Context, c Config) (map[string]any, error) {
	r := &run{Config: c, results: map[string]any{}}
	now := time.Now()
	for _, h := range c.Handlers {
		r.waiting = append(r.waiting, &state{Handler: h, started: now, due: now})
	}
	handling, stop := stoppable(ctx)
	defer stop()
	for len(r.waiting) > 0 {
		if err := r.sleep(ctx); err != nil {
			return r.results, r.unfinished(err)
		}
		r.pass(handling)
	}
	if r.failed != nil {
		return r.results, r.failed
	}
	return r.results, nil
}

// run is an activity under way.
type run struct {
	Config
	waiting []*state // handlers that are not finished, in their order
	results map[string]any
	failed  *FailedError // nil if none has failed
}

// state is what is known of one handler.
type state struct {
	Handler
	retries int
	started time.Time
	due     time.Time
}

// sleep waits until the next handler is due. Its only error is that of ctx.
func (r *run) sleep(ctx context.Context) error {
	next := r.waiting[0].due
	for _, s := range r.waiting {
		if s.due.Before(next) {
			next = s.due
		}
	}
	timer := time.NewTimer(time.Until(next))
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// pass calls all handlers that are due.
func (r *run) pass(ctx context.Context) {
	var left []*state
	for _, s := range r.waiting {
		if ctx.Err() != nil || s.due.After(time.Now()) || !r.call(ctx, s) {
			left = append(left, s)
		}
	}
	r.waiting = left
}

// call makes one attempt and tells whether it was the last one.
func (r *run) call(ctx context.Context, s *state) bool {
	outcome := execute.Attempt{
		Title: "Activity", ID: s.ID, Limits: s.Limits,
		Retries: s.retries, Started: s.started,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: registry.Retry,
		Log: r.Log, Observe: r.Observe,
		Call: func(ctx context.Context) (any, error) {
			return s.Call(ctx, Call{Retry: s.retries, Started: s.started})
		},
	}.Make(ctx)
	if !outcome.Void {
		s.retries++
	}
	switch {
	case !outcome.Final:
		s.due = time.Now().Add(outcome.Delay.Or(0))
		return false
	case outcome.Err != nil:
		if r.failed == nil {
			r.failed = &FailedError{Activity: r.Name}
		}
		r.failed.Handlers = append(r.failed.Handlers, HandlerError{ID: s.ID, Where: s.Where, Err: outcome.Err})
	case outcome.Result != nil:
		r.results[s.ID] = outcome.Result
	}
	return true
}

func (r *run) unfinished(cause error) error {
	e := &UnfinishedError{Activity: r.Name, Err: cause}
	for _, s := range r.waiting {
		e.IDs = append(e.IDs, s.ID)
	}
	if r.failed != nil {
		return errors.Join(e, r.failed)
	}
	return e
}

// stoppable derives a context whose end, whatever its cause, is that of a stop
// for the handlers, so that an interruption is not taken for a failure.
func stoppable(ctx context.Context) (context.Context, func()) {
	derived, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func() { cancel(fmt.Errorf("%w: %w", execute.ErrStopping, context.Cause(ctx))) }
	if ctx.Err() != nil {
		end()
	}
	detach := context.AfterFunc(ctx, end)
	return derived, func() { detach(); cancel(nil) }
}

// FailedError says that handlers have failed for good.
type FailedError struct {
	Activity string
	Handlers []HandlerError // at least one, in the order of their failures
}

// HandlerError is the error of one handler.
type HandlerError struct {
	ID    string
	Where string // of the declaration; may be empty
	Err   error
}

func (e *FailedError) Error() string {
	var s strings.Builder
	s.WriteString("One or more handlers failed.")
	for _, h := range e.Handlers {
		fmt.Fprintf(&s, " %s '%s'", e.Activity, h.ID)
		if h.Where != "" {
			fmt.Fprintf(&s, " (%s)", h.Where)
		}
		fmt.Fprintf(&s, ": %v", h.Err)
	}
	return s.String()
}

// Unwrap gives all errors of handlers.
func (e *FailedError) Unwrap() []error {
	all := make([]error, len(e.Handlers))
	for i, h := range e.Handlers {
		all[i] = h.Err
	}
	return all
}

// UnfinishedError says that an activity was ended before its handlers were
// finished.
type UnfinishedError struct {
	Activity string
	IDs      []string // of the handlers that are not finished
	Err      error    // why it was ended
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the %s handlers '%s' are not finished: %v", e.Activity, strings.Join(e.IDs, "', '"), e.Err)
}

func (e *UnfinishedError) Unwrap() error { return e.Err }
