package execute

import (
	"context"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Sub-handlers may depend on others. The outcomes that count are those from before the
// pass: they are stored, and the API server has accepted the changes of the handlers.

// waits reports whether a sub-handler waits for another one to finish. Dependencies that do not
// take part count as succeeded. The caller must hold the lock of the runner.
func (s *subs) waits(h *handler.Handler) bool {
	unfinished := func(id string) bool { return !s.runner.State.Find(id).Finished() }
	if h.Last {
		return slices.ContainsFunc(s.all, func(other *handler.Handler) bool { return !other.Last && unfinished(other.ID) })
	}
	for _, id := range slices.Backward(h.DependsOn) { // in a chain, the last one is the one that waits
		if s.part[id] && unfinished(id) {
			return true
		}
	}
	return false
}

// failedBefore returns the first dependency of a sub-handler that has failed. It is empty if there
// is none. Otherwise the sub-handler cannot succeed. The caller must hold the lock of the runner.
func (s *subs) failedBefore(h *handler.Handler) string {
	if !s.failures || h.Last {
		return ""
	}
	for _, id := range h.DependsOn {
		if s.part[id] && s.runner.State.Find(id).Failure {
			return id
		}
	}
	return ""
}

// order prepares the dependencies of the sub-handlers. The caller must hold the lock of the runner.
func (s *subs) order() {
	s.part, s.failures = nil, false
	if !slices.ContainsFunc(s.all, func(h *handler.Handler) bool { return len(h.DependsOn) > 0 }) {
		return
	}
	s.part = make(map[string]bool, len(s.all)) // the number may come from the object
	for _, h := range s.all {
		s.part[h.ID] = true
		s.failures = s.failures || s.runner.State.Find(h.ID).Failure
	}
}

// ready returns the sub-handlers that do not wait for others. Those that depend on a
// failed one fail here, without a call.
func (s *subs) ready(handlers handler.Set) handler.Set {
	if len(s.waiting) == 0 {
		return handlers
	}
	r := s.runner
	r.mu.Lock()
	defer r.mu.Unlock()
	var waiting, ready handler.Set
	for _, h := range handlers { // dependencies are declared first
		switch failed := s.failedBefore(h); {
		case failed != "":
			s.admit(h)
			s.fail(h, failed)
		case s.waits(h):
			waiting = append(waiting, h)
		default:
			s.admit(h)
			ready = append(ready, h)
		}
	}
	s.waiting = waiting
	return ready
}

// admit adds a sub-handler to the handling when its wait for others has ended.
func (s *subs) admit(h *handler.Handler) {
	if r := s.runner; !r.State.Has(h.ID) {
		r.State.Select([]string{h.ID}, r.Reason, time.Now())
		s.ids = append(s.ids, h.ID)
	}
}

// fail records the failure of a sub-handler whose dependency failed.
func (s *subs) fail(h *handler.Handler, dependency string) {
	r := s.runner
	if r.State.Record(h.ID).Finished() {
		return
	}
	reason := fmt.Sprintf("Handler '%s' is not called, because '%s' failed.", h.ID, dependency)
	r.Log.Error(reason, "handler", h.ID, "dependency", dependency)
	r.State.Attempted(h.ID, progress.Attempt{Final: true, Failed: true, Message: cut(reason)}, time.Now())
	s.failures = true
	r.spared = append(r.spared, Spared{ID: h.ID, Dependency: dependency})
}

// delay returns the time until the next sub-handler can be called. It is unset if all are
// finished. The caller must hold the lock of the runner.
func (s *subs) delay(now time.Time) handler.Opt[time.Duration] {
	waiting := map[string]bool{}
	for _, h := range s.waiting {
		if !s.waits(h) && !s.runner.State.Find(h.ID).Finished() {
			return handler.Some(time.Duration(0)) // its dependencies have finished in this pass
		}
		waiting[h.ID] = true
	}
	ids := slices.DeleteFunc(slices.Clone(s.ids), func(id string) bool { return waiting[id] })
	return s.runner.State.Delay(ids, now)
}

// Spared is a sub-handler that failed without a call, because its dependency failed.
type Spared struct{ ID, Dependency string }

// Spared returns the sub-handlers that failed without a call in this pass. Dependencies
// precede those that depend on them.
func (r *Runner) Spared() []Spared {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.spared)
}

// outcome returns the outcome of a sub-handler by its record: of this pass, or the stored
// one. A sub-handler that saw the current state in an earlier handling is done.
func (s *subs) outcome(ctx context.Context, h *handler.Handler) (handler.SubOutcome, error) {
	r := s.runner
	if r.Cause != nil && r.Cause(h.ID, s.parent.cause).Reason == cause.Noop {
		return handler.SubOutcome{Done: true}, nil
	}
	ids := append([]string{h.ID}, h.Formerly...)
	stored, err := r.Load(ctx, ids)
	if err != nil {
		return handler.SubOutcome{}, fmt.Errorf("load the progress of the sub-handler %q: %w", h.ID, err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	record := r.State.Find(h.ID)
	for _, id := range ids {
		if found, ok := stored[id]; ok && !r.State.Has(h.ID) {
			record = found
			break
		}
	}
	return r.judged(record), nil
}

// judged returns the outcome in a record. A record of another reason is outdated.
func (r *Runner) judged(record storage.Record) handler.SubOutcome {
	if record.Purpose != "" && record.Purpose != string(r.Reason) {
		return handler.SubOutcome{}
	}
	o := handler.SubOutcome{Done: record.Finished(), Failed: record.Failure}
	if record.Failure && record.Message != nil {
		o.Error = *record.Message
	}
	return o
}

// RunSubs runs sub-handlers outside of a call of their parent, for tests of handlers.
func (r *Runner) RunSubs(ctx context.Context, handlers []*handler.Handler, how handler.SubOptions) error {
	return r.alone().run(ctx, handlers, how)
}

// SubOutcome returns the outcome of a sub-handler after [Runner.RunSubs].
func (r *Runner) SubOutcome(ctx context.Context, h *handler.Handler) (handler.SubOutcome, error) {
	return r.alone().outcome(ctx, h)
}

// alone returns sub-handlers without the call of a parent.
func (r *Runner) alone() *subs {
	parent := &call{handler: &handler.Handler{}}
	parent.subs = &subs{runner: r, parent: parent}
	return parent.subs
}
