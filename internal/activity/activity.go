// Package activity runs handlers that do not belong to an object: startup, cleanup,
// login and probes.
//
// Nothing is stored: every run of an activity starts from the beginning.
package activity

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// Handler is one handler of an activity.
type Handler struct {
	ID     string
	Where  string // file:line of the declaration
	Limits handler.Limits
	Call   func(ctx context.Context, c Call) (result any, err error)
}

// Call describes one call of a handler.
type Call struct {
	Retry   int       // attempts before this one
	Started time.Time // start of the first attempt
	// Log points to the logger of the outcome, which the call may replace.
	Log **slog.Logger
}

// Config is an activity to run.
type Config struct {
	Name     string // "startup", "cleanup", …: for errors
	Handlers []Handler

	// DefaultBackoff is the pause after errors that are neither temporary nor
	// permanent, for handlers without a backoff.
	DefaultBackoff time.Duration

	Log     *slog.Logger
	Observe execute.Observer // may be nil
}

// Run calls all handlers sequentially, in order, and retries them when they are due,
// until all are finished. By default, errors are retried forever.
//
// It returns the results that are not nil by the id of the handler, even with an error.
// The error is a [FailedError] if handlers failed permanently, after all others
// finished. It is an [UnfinishedError] as soon as ctx has ended, but a running handler
// is waited for. An attempt that was interrupted by that does not count as failed.
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

// run is a running activity.
type run struct {
	Config
	waiting []*state // unfinished handlers, in order
	results map[string]any
	failed  *FailedError // nil means that none has failed
}

// state is the state of one handler.
type state struct {
	Handler
	retries int
	started time.Time
	due     time.Time
}

// sleep waits until the next handler is due. It returns an error only if ctx ends.
func (r *run) sleep(ctx context.Context) error {
	next := r.waiting[0].due
	for _, s := range r.waiting {
		if s.due.Before(next) {
			next = s.due
		}
	}
	if _ = backoff.Sleep(ctx, time.Until(next)); ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return nil
}

// pass calls all due handlers.
func (r *run) pass(ctx context.Context) {
	var left []*state
	for _, s := range r.waiting {
		if ctx.Err() != nil || s.due.After(time.Now()) || !r.call(ctx, s) {
			left = append(left, s)
		}
	}
	r.waiting = left
}

// call makes one attempt and reports whether it was the last one.
func (r *run) call(ctx context.Context, s *state) bool {
	log := r.Log
	outcome := execute.Attempt{
		Title: "Activity", ID: s.ID, Limits: s.Limits,
		Retries: s.retries, Started: s.started,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: handler.Retry,
		Log: r.Log, Own: &log, Observe: r.Observe,
		Call: func(ctx context.Context) (any, error) {
			return s.Call(ctx, Call{Retry: s.retries, Started: s.started, Log: &log})
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

// stoppable returns a context whose end always has the cause [execute.ErrStopping], so
// interrupted handlers do not count as failed.
func stoppable(ctx context.Context) (context.Context, func()) {
	derived, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	end := func() { cancel(fmt.Errorf("%w: %w", execute.ErrStopping, context.Cause(ctx))) }
	if ctx.Err() != nil {
		end()
	}
	detach := context.AfterFunc(ctx, end)
	return derived, func() { detach(); cancel(nil) }
}

// FailedError means that handlers failed permanently.
type FailedError struct {
	Activity string
	Handlers []HandlerError // at least one, in order of failure
}

// HandlerError is the error of one handler.
type HandlerError struct {
	ID    string
	Where string // location of the declaration; may be empty
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

// Unwrap returns the errors of all handlers.
func (e *FailedError) Unwrap() []error {
	all := make([]error, len(e.Handlers))
	for i, h := range e.Handlers {
		all[i] = h.Err
	}
	return all
}

// UnfinishedError means that an activity ended before its handlers were finished.
type UnfinishedError struct {
	Activity string
	IDs      []string // of the unfinished handlers
	Err      error    // the cause of the end
}

func (e *UnfinishedError) Error() string {
	return fmt.Sprintf("the %s handlers '%s' are not finished: %v", e.Activity, strings.Join(e.IDs, "', '"), e.Err)
}

func (e *UnfinishedError) Unwrap() error { return e.Err }
