package process

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// decide finds out what is due for the object, has it done, and returns what is
// to be written. stopping is the time until more is done about daemons that are
// to stop.
func (s *sight) decide(ctx context.Context, stopping delay) (*change, error) {
	s.staying = stopping
	s.asking = s.request()
	interested := s.Handlers.Interested(s.asking)
	mustBlock := interested && s.Handlers.Blocking(s.asking) ||
		s.Daemons != nil && s.Daemons.Blocking(s.memory.daemons, s.plainRequest(s.memory, s.body))
	c := &change{finalizer: apply.Finalizer{Name: s.Config.Finalizer}}
	switch {
	case mustBlock && !s.blocked && !s.body.Deleting:
		return s.guard(c), nil // it must be there before anything is done
	case !mustBlock && s.blocked:
		s.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		return c, nil
	case interested && s.cause.Reason == cause.Create && s.memory.handled:
		s.memory.handled = false // until it is again
		if c.due = s.undone("What the operator had stored on the object is gone, so it is handled as a new one. If somebody else removes annotations, let them keep those of the operator."); c.due.Set {
			return c, nil
		}
	}
	save := func(context.Context) error { return nil }
	if interested {
		var err error
		if save, err = s.handleCause(ctx, c); err != nil {
			return nil, err
		}
	}
	finish := func(ctx context.Context) (*change, error) { return s.finish(ctx, c, stopping, save) }
	finished, err := finish(ctx)
	if err != nil && c.ran {
		s.memory.work().unsaved = finish // they must not run again for that
	}
	return finished, err
}

// finish completes a change after handlers have run: what became of them is
// saved, and the object is let go if nothing holds it anymore.
func (s *sight) finish(ctx context.Context, c *change, stopping delay, save func(context.Context) error) (*change, error) {
	c.notes = patch.Patch{}
	if err := s.disown(ctx, c); err != nil {
		return nil, err
	}
	if err := save(ctx); err != nil {
		return nil, err
	}
	if stopping.Set {
		// They go on by themselves and wake the object when they end: there is no
		// need to look more often than this.
		c.due = sooner(c.due, registry.Some(max(stopping.Is, 100*time.Millisecond)))
	}
	if s.body.Deleting && s.blocked && !c.due.Set && !c.interrupted {
		s.log.Debug("Removing the finalizer, thus allowing the actual deletion.")
		c.finalizer.Remove = true
	}
	if u, ok := s.Config.Progress.(storage.Untoucher); ok && !(c.asked.Empty() && c.notes.Empty()) {
		u.Untouch(s.stored, &c.notes)
	}
	return c, nil
}

// guard puts the finalizer on the object; if somebody has taken it off again,
// the later, the more often that happened.
func (s *sight) guard(c *change) *change {
	if s.memory.guarded {
		s.memory.guarded = false
		if c.due = s.undone("The finalizer of the operator is gone, and is put on the object again. If somebody else removes finalizers, let them keep that of the operator."); c.due.Set {
			return c
		}
	}
	s.log.Debug("Adding the finalizer, thus preventing the actual deletion.")
	c.finalizer.Add = true
	c.written = func() { s.memory.guarded = true }
	return c
}

// sooner is the shorter of two delays, of which either may be unset.
func sooner(a, b delay) delay {
	if !a.Set || b.Set && b.Is < a.Is {
		return b
	}
	return a
}

// undone is called when what the operator puts on an object is found removed. It
// is done anew, but the more often this happens, the later, so that the two do
// not run a race.
func (s *sight) undone(complaint string) delay {
	s.memory.undone = min(s.memory.undone, 253) + 1
	s.log.Warn(complaint, "times", s.memory.undone)
	if s.memory.undone == 1 {
		return delay{}
	}
	return registry.Some(s.pause(int(s.memory.undone) - 2))
}

// handleCause does what the reason asks for. It returns how to save what became
// of it.
func (s *sight) handleCause(ctx context.Context, c *change) (save func(context.Context) error, err error) {
	nothing := func(context.Context) error { return nil }
	switch s.cause.Reason {
	case cause.Free:
		s.log.Debug("Deletion, but we are done with it, and we do not care.")
		return nothing, nil
	case cause.Noop, cause.Resume:
		// It may be so only because a change was taken back before all handlers
		// had seen it; but some had.
		if save, err := s.takenBack(ctx); save != nil || err != nil {
			return func(ctx context.Context) error { return save(ctx, c) }, err
		}
		if s.cause.Reason == cause.Noop {
			s.log.Debug("Something has changed, but we are not interested (the essence is the same).")
			return nothing, nil
		}
	}
	return s.handle(ctx, c)
}
