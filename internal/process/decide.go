package process

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// decide runs the handlers that are due and returns the change to write. stopping is
// the time until the next stage of stopping daemons.
func (v *view) decide(ctx context.Context, stopping delay) (*change, error) {
	v.staying = stopping
	v.asking = v.request()
	if err := v.expectTeardown(ctx); err != nil {
		return nil, err
	}
	c := &change{finalizer: apply.Finalizer{Name: v.Config.Finalizer, Former: v.Config.Former}, parts: v.asked}
	if v.handedOver() {
		return c, nil // the finalizer and the records belong to the next owner
	}
	if v.notePause(v.memory, v.body, v.pause); v.pause != nil {
		c.due = v.untilContinued()
		return c, nil
	}
	interested, mustBlock := v.interested(ctx)
	then := v.course(interested, mustBlock)
	switch then {
	case thenGuard:
		return c, v.move(ctx, v.addFinalizer(c)) // it must precede all side effects
	case thenUnguard:
		if !v.memory.facts.has(guarded) {
			v.Notices.removesFinalizer(v.log, v.finalizer(), v.base != nil, false)
		}
		v.log.Debug("Removing the finalizer, as there are no handlers requiring it.")
		c.finalizer.Remove = true
		c.finalizer.Still = func(now *object.Body) bool { return v.unblocks(ctx, now) }
		c.written = func() { v.memory.facts.drop(guarded) }
		return c, v.move(ctx, c)
	}
	if then == thenHandle && v.cause.Reason == cause.Create && v.memory.handled {
		v.memory.handled = false // until the next handling completes
		if c.due = v.undone("The state that the operator had stored on the object is gone, so it is handled as a new object. If another operator handles the same objects, stop one of them or use a peering; if another client removes annotations, configure it to keep the operator's annotations."); c.due.Set {
			return c, nil
		}
	}
	handle := v.handleCause
	if then == thenSkip {
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
		v.memory.pend().unsaved = c // a failed save must not repeat the handlers
	}
	return c, err
}

// interested reports whether there are handlers for the object, and whether its
// deletion must wait for one of them.
func (v *view) interested(ctx context.Context) (interested, mustBlock bool) {
	interested = v.Handlers.Interested(v.asking) || v.missed(ctx)
	mustBlock = interested && v.Handlers.Blocking(v.asking) ||
		v.Daemons != nil && v.Daemons.Blocking(v.memory.daemons.Load(), v.plainRequest(v.memory, v.body)) ||
		v.ownsInOrder
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
	if newer.expectTeardown(ctx) != nil {
		return false
	}
	_, mustBlock := newer.interested(ctx)
	return !mustBlock
}

// conclude completes a change after handlers have run: it saves their outcomes, and
// removes the finalizer if nothing requires it. It is called again if the API server
// refused the change of a handler.
func (v *view) conclude(ctx context.Context, c *change, handled func(context.Context) error) error {
	c.notes, c.due, c.finalizer.Add, c.finalizer.Remove, c.written = patch.Patch{}, delay{}, false, false, nil
	if err := v.removeForeign(ctx, c); err != nil {
		return err
	}
	if err := handled(ctx); err != nil {
		return err
	}
	if v.tearing && !c.due.Set && !c.interrupted {
		v.teardown(ctx, c)
	}
	if v.staying.Set {
		// Daemons wake the object when they end, so polling may be slow.
		c.due = sooner(c.due, handler.Some(max(v.staying.Is, 100*time.Millisecond)))
	}
	if v.body.Deleting && v.blocked && !c.due.Set && !c.interrupted {
		if !v.memory.facts.has(guarded) {
			v.Notices.removesFinalizer(v.log, v.finalizer(), v.base != nil || c.handling != nil && len(c.handling.state.IDs()) > 0, true)
		}
		v.log.Debug("Removing the finalizer, thus allowing the actual deletion.")
		c.finalizer.Remove = true
	}
	if u, ok := v.Config.Progress.(storage.Untoucher); ok && !(len(c.parts) == 0 && c.notes.Empty()) {
		u.Untouch(v.stored, &c.notes)
	}
	return v.move(ctx, c)
}

// addFinalizer puts the finalizer on the object. If another client removed it, the
// delay before it is restored grows each time.
func (v *view) addFinalizer(c *change) *change {
	if v.memory.facts.drop(guarded) {
		if c.due = v.undone("The finalizer of the operator is gone; restoring it. If another operator handles the same objects, stop one of them or use a peering; if another client removes finalizers, configure it to keep the operator's finalizer."); c.due.Set {
			return c
		}
	}
	v.log.Debug("Adding the finalizer, thus preventing the actual deletion.")
	c.finalizer.Add = true
	c.written = func() { v.memory.facts.first(guarded) }
	return c
}

// sooner returns the shorter of two delays. Either may be unset.
func sooner(a, b delay) delay {
	if !a.Set || b.Set && b.Is < a.Is {
		return b
	}
	return a
}

// undone handles the removal of our finalizer or annotations by another client. It
// returns a growing delay before they are restored. Without it, the operator and the
// client would fight in a loop.
func (v *view) undone(complaint string) delay {
	v.memory.undone = min(v.memory.undone, 253) + 1
	v.log.Warn(complaint, "times", v.memory.undone)
	if v.memory.undone == 1 {
		return delay{}
	}
	return handler.Some(v.errorDelay(int(v.memory.undone) - 2))
}

// handleCause handles the cause. It returns a function that puts the outcomes into
// the change; nil means that there is nothing to save.
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
	switch h.dealing() {
	case thenTakeBack:
		// The object is as before the change, but some handlers have seen the change.
		v.log.Info("A change was reverted while it was handled.")
		return func(ctx context.Context) error { return h.takeBack(ctx, c) }, nil
	case thenHideBase:
		return func(ctx context.Context) error { return h.hideBase(ctx, c) }, nil
	case thenDropNote:
		v.log.Debug("Removing the note of a handling that another operator has finished.")
		return func(ctx context.Context) error { return h.saveProgress(ctx, c, nil, []string{progress.HandlingID}) }, nil
	case thenNothing:
		v.log.Debug("Something has changed, but we are not interested (the essence is the same).")
		return nil, nil
	case thenCatchUp:
		h.reason = cause.Update
	}
	return h.run(ctx, c)
}
