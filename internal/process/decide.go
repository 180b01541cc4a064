package process

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// decide determines what is due for the object, has it done, and returns the change
// to be written. stopping is the time until the next stage of stopping daemons.
func (s *sight) decide(ctx context.Context, stopping delay) (*change, error) {
	s.staying = stopping
	s.asking = s.request()
	c := &change{finalizer: apply.Finalizer{Name: s.Config.Finalizer}, parts: s.asked}
	interested, mustBlock := s.interested()
	switch {
	case mustBlock && !s.blocked && !s.body.Deleting:
		return s.guard(c), nil // it must be there before anything is done
	case !mustBlock && s.blocked:
		if !s.memory.guarded {
			s.Notices.removesFinalizer(s.log, s.Config.Finalizer, s.base != nil, false)
		}
		s.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		c.finalizer.Still = func(now *object.Body) bool { return s.unblocks(ctx, now) }
		return c, nil
	case interested && s.cause.Reason == cause.Create && s.memory.handled:
		s.memory.handled = false // until it is again
		if c.due = s.undone("What the operator had stored on the object is gone, so it is handled as a new one. If another operator handles the same objects, stop one of them or let them meet at a peering; if another client removes annotations, let it keep those of the operator."); c.due.Set {
			return c, nil
		}
	}
	handle := s.handleCause
	if !interested {
		handle = s.leave
	}
	conclude, err := handle(ctx, c)
	if err != nil {
		return nil, err
	}
	if conclude == nil {
		conclude = func(context.Context) error { return nil }
	}
	c.conclude = func(ctx context.Context) error { return s.conclude(ctx, c, conclude) }
	if err = c.conclude(ctx); err != nil && c.ran {
		s.memory.work().unsaved = c // its handlers must not run again for that
	}
	return c, err
}

// interested reports whether there are handlers for the object, and whether its
// deletion must wait for one of them.
func (s *sight) interested() (interested, mustBlock bool) {
	interested = s.Handlers.Interested(s.asking)
	mustBlock = interested && s.Handlers.Blocking(s.asking) ||
		s.Daemons != nil && s.Daemons.Blocking(s.memory.daemons, s.plainRequest(s.memory, s.body))
	return interested, mustBlock
}

// unblocks reports whether the finalizer may be removed from a newer state of the
// object, which was read after a conflict.
func (s *sight) unblocks(ctx context.Context, now *object.Body) bool {
	newer, err := s.look(ctx, s.memory, now)
	if err != nil {
		return false
	}
	newer.asking = newer.request()
	_, mustBlock := newer.interested()
	return !mustBlock
}

// conclude completes a change after handlers have run: their outcomes are saved,
// and the finalizer is removed if nothing requires it any more. It is called again
// if the API server refused a change that a handler asked for.
func (s *sight) conclude(ctx context.Context, c *change, handled func(context.Context) error) error {
	c.notes, c.due, c.finalizer.Remove, c.written = patch.Patch{}, delay{}, false, nil
	if err := s.disown(ctx, c); err != nil {
		return err
	}
	if err := handled(ctx); err != nil {
		return err
	}
	if s.staying.Set {
		// They go on by themselves and wake the object when they end: there is no
		// need to look more often than this.
		c.due = sooner(c.due, registry.Some(max(s.staying.Is, 100*time.Millisecond)))
	}
	if s.body.Deleting && s.blocked && !c.due.Set && !c.interrupted {
		if !s.memory.guarded {
			s.Notices.removesFinalizer(s.log, s.Config.Finalizer, s.base != nil || c.handling != nil && len(c.handling.state.IDs()) > 0, true)
		}
		s.log.Debug("Removing the finalizer, thus allowing the actual deletion.")
		c.finalizer.Remove = true
	}
	if u, ok := s.Config.Progress.(storage.Untoucher); ok && !(len(c.parts) == 0 && c.notes.Empty()) {
		u.Untouch(s.stored, &c.notes)
	}
	return nil
}

// guard puts the finalizer on the object; if another client removed it, with delays
// that grow each time.
func (s *sight) guard(c *change) *change {
	if s.memory.guarded {
		s.memory.guarded = false
		if c.due = s.undone("The finalizer of the operator is gone, and is put on the object again. If another operator handles the same objects, stop one of them or let them meet at a peering; if another client removes finalizers, let it keep that of the operator."); c.due.Set {
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

// undone handles the removal of our finalizer or annotations by another client.
// They are restored with growing delays, so that the two do not fight in a loop.
func (s *sight) undone(complaint string) delay {
	s.memory.undone = min(s.memory.undone, 253) + 1
	s.log.Warn(complaint, "times", s.memory.undone)
	if s.memory.undone == 1 {
		return delay{}
	}
	return registry.Some(s.pause(int(s.memory.undone) - 2))
}

// handleCause does what the reason asks for. It returns how to save the outcomes;
// nil if there is nothing to save.
func (s *sight) handleCause(ctx context.Context, c *change) (conclude func(context.Context) error, err error) {
	if s.cause.Reason == cause.Free {
		s.log.Debug("Deletion, but we are done with it, and we do not care.")
		return nil, nil
	}
	h, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	if conclude := h.sendTodo(c); conclude != nil {
		return conclude, nil
	}
	if s.cause.Reason == cause.Noop || s.cause.Reason == cause.Resume {
		switch {
		case h.behind(): // first: their update may be in progress
			h.reason = cause.Update
		case len(h.state.Recorded(cause.Update)) > 0:
			// A change was taken back before all handlers had seen it; but some had.
			s.log.Info("A change was taken back while it was handled.")
			return func(ctx context.Context) error { return h.takeBack(ctx, c) }, nil
		case s.plain && s.cause.Reason == cause.Noop:
			return func(ctx context.Context) error { return h.hideBase(ctx, c) }, nil
		case h.stale(), h.note.Followed():
			s.log.Debug("Removing the note about a handling that another operator has finished.")
			return func(ctx context.Context) error { return h.saveProgress(ctx, c, nil, []string{progress.HandlingID}) }, nil
		case s.cause.Reason == cause.Noop:
			s.log.Debug("Something has changed, but we are not interested (the essence is the same).")
			return nil, nil
		}
	}
	return h.handle(ctx, c)
}
