package execute

import (
	"context"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
)

// subs has the sub-handlers that one call has run.
type subs struct {
	runner *Runner
	parent *call
	ids    []string
	failed bool // the framework could not run them

	all      handler.Set     // all that take part
	part     map[string]bool // their ids. nil means that none depends on another one
	failures bool            // some of them have failed
	waiting  handler.Set     // those that wait for others
}

// manySubs is the number of sub-handlers from which a warning is logged: each has a
// record on the object, and the size of annotations is limited.
const manySubs = 900

// run makes a pass over sub-handlers on behalf of the call.
func (s *subs) run(ctx context.Context, handlers []*handler.Handler, how handler.SubOptions) error {
	declared := len(handlers)
	handlers = s.runner.concerned(handlers, s.parent.cause)
	began, err := s.enlist(ctx, handlers)
	if err != nil {
		return err
	}
	if declared >= manySubs && !began { // the parent is called again for each of them
		s.runner.Log.Warn("So many sub-handlers may not fit on one object: split the work into child objects with their own handlers.",
			"handler", s.parent.handler.ID, "sub-handlers", declared)
	}
	lifecycle := s.runner.Lifecycle
	if how.Lifecycle != nil {
		lifecycle = how.Lifecycle
	}
	if err := s.runner.pass(ctx, s.parent, s.ready(handlers), lifecycle, how.Parallel); err != nil {
		return err
	}
	return s.unfinished()
}

// concerned returns the sub-handlers that are not up to date. Sub-handlers that saw the
// current state in an earlier handling are omitted.
func (r *Runner) concerned(handlers handler.Set, parent *cause.Cause) handler.Set {
	if r.Cause == nil {
		return handlers
	}
	var concerned handler.Set
	for _, h := range handlers {
		if r.Cause(h.ID, parent).Reason != cause.Noop {
			concerned = append(concerned, h)
		}
	}
	return concerned
}

// enlist loads the records of the sub-handlers and adds them to the handling. It reports
// whether there were any.
func (s *subs) enlist(ctx context.Context, handlers handler.Set) (began bool, err error) {
	r := s.runner
	records, err := r.Load(ctx, handlers.IDs())
	r.mu.Lock()
	defer r.mu.Unlock()
	if err != nil {
		s.failed = true
		r.failure = fmt.Errorf("load the progress of sub-handlers: %w", err)
		return false, r.failure
	}
	r.State.Add(records)
	s.all, s.waiting = handlers, nil
	own := make([]string, 0, len(handlers))
	for _, h := range handlers {
		for _, former := range h.Formerly {
			r.State.Rename(former, h.ID)
		}
	}
	s.order()
	for _, h := range handlers {
		if s.waits(h) || s.failedBefore(h) != "" {
			s.waiting = append(s.waiting, h)
			if !r.State.Has(h.ID) {
				continue // its time starts with its first call, not with the wait
			}
		}
		own = append(own, h.ID)
	}
	r.State.Select(own, r.Reason, time.Now())
	s.ids = append(s.ids, own...)
	return len(records) > 0, nil
}

// unfinished returns a [handler.UnfinishedError] if some of the sub-handlers must be
// called again, and nil otherwise.
func (s *subs) unfinished() error {
	s.runner.mu.Lock()
	defer s.runner.mu.Unlock()
	delay := s.delay(time.Now())
	if !delay.Set {
		return nil
	}
	return &handler.UnfinishedError{Delay: delay.Is}
}

// refs returns the ids of the sub-handlers on all levels.
func (s *subs) refs() []string {
	return append(s.runner.State.Subs(s.ids), s.ids...)
}
