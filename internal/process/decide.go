package process

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// decide finds out what is due for the object, has it done, and returns what is
// to be written. stopping is the time until more is done about daemons that are
// to stop.
func (s *sight) decide(ctx context.Context, stopping delay) (*change, error) {
	request := s.request()
	interested := s.Handlers.Interested(request)
	mustBlock := interested && s.Handlers.Blocking(request) || s.Daemons != nil && s.Daemons.Blocking(s.memory.daemons, request)
	c := &change{finalizer: apply.Finalizer{Name: s.Config.Finalizer}}
	switch {
	case mustBlock && !s.blocked && !s.body.Deleting:
		s.log.Debug("Adding the finalizer, thus preventing the actual deletion.")
		c.finalizer.Add = true
		return c, nil // it must be there before anything is done
	case !mustBlock && s.blocked:
		s.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		return c, nil
	case interested && s.cause.Reason == cause.Create && s.memory.handled:
		if c.due = s.undone(); c.due.Set {
			return c, nil
		}
	}
	if interested {
		if err := s.handleCause(ctx, c); err != nil {
			return nil, err
		}
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

// sooner is the shorter of two delays, of which either may be unset.
func sooner(a, b delay) delay {
	if !a.Set || b.Set && b.Is < a.Is {
		return b
	}
	return a
}

// undone is called when an object that was handled looks as if it never was:
// somebody removes what the operator stores on it. It is handled anew, but the
// more often this happens, the later, so that the two do not run a race.
func (s *sight) undone() delay {
	s.memory.handled = false // until it is again
	s.memory.undone = min(s.memory.undone, 253) + 1
	s.log.Warn("What the operator had stored on the object is gone, so it is handled as a new one. If somebody else removes annotations, let them keep those of the operator.",
		"times", s.memory.undone)
	if s.memory.undone == 1 {
		return delay{}
	}
	return registry.Some(s.pause(int(s.memory.undone) - 2))
}

// handleCause does what the reason asks for.
func (s *sight) handleCause(ctx context.Context, c *change) error {
	switch s.cause.Reason {
	case cause.Free:
		s.log.Debug("Deletion, but we are done with it, and we do not care.")
		return nil
	case cause.Noop, cause.Resume:
		// It may be so only because a change was taken back before all handlers
		// had seen it; but some had.
		if taken, err := s.takenBack(ctx, c); taken || err != nil {
			return err
		}
		if s.cause.Reason == cause.Noop {
			s.log.Debug("Something has changed, but we are not interested (the essence is the same).")
			return nil
		}
	}
	return s.handle(ctx, c)
}
