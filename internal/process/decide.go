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
func (v *view) decide(ctx context.Context, stopping delay) (*change, error) {
	v.staying = stopping
	v.asking = v.request()
	c := &change{finalizer: apply.Finalizer{Name: v.Config.Finalizer}, parts: v.asked}
	interested, mustBlock := v.interested()
	switch {
	case mustBlock && !v.blocked && !v.body.Deleting:
		return v.addFinalizer(c), nil // it must be there before anything is done
	case !mustBlock && v.blocked:
		if !v.memory.guarded {
			v.Notices.removesFinalizer(v.log, v.Config.Finalizer, v.base != nil, false)
		}
		v.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		c.finalizer.Still = func(now *object.Body) bool { return v.unblocks(ctx, now) }
		return c, nil
	case interested && v.cause.Reason == cause.Create && v.memory.handled:
		v.memory.handled = false // until it is again
		if c.due = v.undone("What the operator had stored on the object is gone, so it is handled as a new one. If another operator handles the same objects, stop one of them or let them meet at a peering; if another client removes annotations, let it keep those of the operator."); c.due.Set {
			return c, nil
		}
	}
	handle := v.handleCause
	if !interested {
		handle = v.finishTodo
	}
	conclude, err := handle(ctx, c)
	if err != nil {
		return nil, err
	}
	if conclude == nil {
		conclude = func(context.Context) error { return nil }
	}
	c.conclude = func(ctx context.Context) error { return v.conclude(ctx, c, conclude) }
	if err = c.conclude(ctx); err != nil && c.ran {
		v.memory.pend().unsaved = c // its handlers must not run again for that
	}
	return c, err
}

// interested reports whether there are handlers for the object, and whether its
// deletion must wait for one of them.
func (v *view) interested() (interested, mustBlock bool) {
	interested = v.Handlers.Interested(v.asking)
	mustBlock = interested && v.Handlers.Blocking(v.asking) ||
		v.Daemons != nil && v.Daemons.Blocking(v.memory.daemons, v.plainRequest(v.memory, v.body))
	return interested, mustBlock
}

// unblocks reports whether the finalizer may be removed from a newer state of the
// object, which was read after a conflict.
func (v *view) unblocks(ctx context.Context, now *object.Body) bool {
	newer, err := v.view(ctx, v.memory, now)
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
func (v *view) conclude(ctx context.Context, c *change, handled func(context.Context) error) error {
	c.notes, c.due, c.finalizer.Remove, c.written = patch.Patch{}, delay{}, false, nil
	if err := v.removeForeign(ctx, c); err != nil {
		return err
	}
	if err := handled(ctx); err != nil {
		return err
	}
	if v.staying.Set {
		// They go on by themselves and wake the object when they end: there is no
		// need to look more often than this.
		c.due = sooner(c.due, registry.Some(max(v.staying.Is, 100*time.Millisecond)))
	}
	if v.body.Deleting && v.blocked && !c.due.Set && !c.interrupted {
		if !v.memory.guarded {
			v.Notices.removesFinalizer(v.log, v.Config.Finalizer, v.base != nil || c.handling != nil && len(c.handling.state.IDs()) > 0, true)
		}
		v.log.Debug("Removing the finalizer, thus allowing the actual deletion.")
		c.finalizer.Remove = true
	}
	if u, ok := v.Config.Progress.(storage.Untoucher); ok && !(len(c.parts) == 0 && c.notes.Empty()) {
		u.Untouch(v.stored, &c.notes)
	}
	return nil
}

// guard puts the finalizer on the object; if another client removed it, with delays
// that grow each time.
func (v *view) addFinalizer(c *change) *change {
	if v.memory.guarded {
		v.memory.guarded = false
		if c.due = v.undone("The finalizer of the operator is gone, and is put on the object again. If another operator handles the same objects, stop one of them or let them meet at a peering; if another client removes finalizers, let it keep that of the operator."); c.due.Set {
			return c
		}
	}
	v.log.Debug("Adding the finalizer, thus preventing the actual deletion.")
	c.finalizer.Add = true
	c.written = func() { v.memory.guarded = true }
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
func (v *view) undone(complaint string) delay {
	v.memory.undone = min(v.memory.undone, 253) + 1
	v.log.Warn(complaint, "times", v.memory.undone)
	if v.memory.undone == 1 {
		return delay{}
	}
	return registry.Some(v.errorDelay(int(v.memory.undone) - 2))
}

// handleCause does what the reason asks for. It returns how to save the outcomes;
// nil if there is nothing to save.
func (v *view) handleCause(ctx context.Context, c *change) (conclude func(context.Context) error, err error) {
	if v.cause.Reason == cause.Free {
		v.log.Debug("Deletion, but we are done with it, and we do not care.")
		return nil, nil
	}
	h, err := v.open(ctx)
	if err != nil {
		return nil, err
	}
	if conclude := h.sendTodo(c); conclude != nil {
		return conclude, nil
	}
	if v.cause.Reason == cause.Noop || v.cause.Reason == cause.Resume {
		switch {
		case h.behind(): // first: their update may be in progress
			h.reason = cause.Update
		case len(h.state.Recorded(cause.Update)) > 0:
			// A change was taken back before all handlers had seen it; but some had.
			v.log.Info("A change was taken back while it was handled.")
			return func(ctx context.Context) error { return h.takeBack(ctx, c) }, nil
		case v.plain && v.cause.Reason == cause.Noop:
			return func(ctx context.Context) error { return h.hideBase(ctx, c) }, nil
		case h.stale(), h.note.Followed():
			v.log.Debug("Removing the note about a handling that another operator has finished.")
			return func(ctx context.Context) error { return h.saveProgress(ctx, c, nil, []string{progress.HandlingID}) }, nil
		case v.cause.Reason == cause.Noop:
			v.log.Debug("Something has changed, but we are not interested (the essence is the same).")
			return nil, nil
		}
	}
	return h.run(ctx, c)
}
