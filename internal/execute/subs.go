package execute

import (
	"context"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/registry"
)

// subs are the sub-handlers that one call has run.
type subs struct {
	runner *Runner
	parent *call
	ids    []string
	failed bool // the framework could not run them
}

// manySubs is where sub-handlers become too many for one object: each has a
// record on it, and annotations have a limit.
const manySubs = 900

// run makes a pass over sub-handlers on behalf of the call.
func (s *subs) run(ctx context.Context, handlers []*registry.Handler, how registry.SubOptions) error {
	if len(handlers) >= manySubs {
		s.runner.Log.Warn("So many sub-handlers may not fit on one object: make the parts objects of their own, with handlers of their own.",
			"handler", s.parent.handler.ID, "sub-handlers", len(handlers))
	}
	handlers = s.runner.concerned(handlers, s.parent.cause)
	if err := s.enlist(ctx, handlers); err != nil {
		return err
	}
	lifecycle := s.runner.Lifecycle
	if how.Lifecycle != nil {
		lifecycle = how.Lifecycle
	}
	if err := s.runner.pass(ctx, s.parent, handlers, lifecycle, how.Parallel); err != nil {
		return err
	}
	return s.unfinished()
}

// concerned returns the sub-handlers that are not up to date: those that saw the
// present state already, in a handling before this one, are left out.
func (r *Runner) concerned(handlers registry.Set, parent *cause.Cause) registry.Set {
	if r.Cause == nil {
		return handlers
	}
	var concerned registry.Set
	for _, h := range handlers {
		if r.Cause(h.ID, parent).Reason != cause.Noop {
			concerned = append(concerned, h)
		}
	}
	return concerned
}

// enlist makes the sub-handlers take part in the handling.
func (s *subs) enlist(ctx context.Context, handlers registry.Set) error {
	r := s.runner
	records, err := r.Load(ctx, handlers.IDs())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		s.failed = true
		r.failure = fmt.Errorf("load the progress of sub-handlers: %w", err)
		return r.failure
	}
	r.State.Add(records)
	own := make([]string, 0, len(handlers))
	for _, h := range handlers {
		for _, former := range h.Formerly {
			r.State.Rename(former, h.ID)
		}
		own = append(own, h.ID)
	}
	r.State.Select(own, r.Reason, time.Now())
	s.ids = append(s.ids, own...)
	return nil
}

// unfinished tells that some of the sub-handlers must be called again; nil if
// none.
func (s *subs) unfinished() error {
	s.runner.mu.Lock()
	defer s.runner.mu.Unlock()
	delay := s.runner.State.Delay(s.ids, time.Now())
	if !delay.Set {
		return nil
	}
	return &registry.UnfinishedError{Delay: delay.Is}
}

// refs are the ids of the sub-handlers on all levels.
func (s *subs) refs() []string {
	return append(s.runner.State.Subs(s.ids), s.ids...)
}
