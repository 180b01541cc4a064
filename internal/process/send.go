package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// send sends the change. If the API server refuses it, send sends the parts one by one.
// The refusal of a part becomes the error of its handler.
func (p *Processor) send(ctx context.Context, applier apply.Applier, body *object.Body, c *change) (*object.Body, error) {
	if !c.apart {
		after, err := p.apply(ctx, applier, body, c.asked(), &c.notes, c.finalizer)
		if !refused(err) {
			return after, err
		}
		if len(c.parts) == 0 {
			return p.makeRoom(ctx, applier, after, c, err)
		}
		c.apart, c.todo, c.together, body = true, false, statusFields(c.asked(), body), after
	}
	applier.Brief = false
	for len(c.parts) > 0 {
		after, err := p.sendPart(ctx, applier, body, c)
		if err != nil {
			return after, err
		}
		body = after
	}
	if c.conclude != nil {
		if err := c.conclude(ctx); err != nil {
			return body, err
		}
	}
	// The first request wrote the status of all parts. Undo that of the refused parts.
	var back patch.Patch
	back.Merge(patch.Inverse(patch.Minus(c.together, c.accepted.Fields()), c.from.Map(), body.Map()))
	after, err := p.apply(ctx, applier, body, &back, &c.notes, c.finalizer)
	if refused(err) {
		return p.makeRoom(ctx, applier, after, c, err)
	}
	return after, err
}

// makeRoom sends refused records again without the base if the object is being deleted.
// Such an object needs no base, and its annotations may be full.
func (p *Processor) makeRoom(ctx context.Context, applier apply.Applier, body *object.Body, c *change, refusal error) (*object.Body, error) {
	base, ok := p.Config.Base.(storage.Discarder)
	if !ok || !body.Deleting {
		return body, &unsavedError{refusal}
	}
	if _, found, err := p.Config.Base.Load(ctx, stored{body}); !found && err == nil {
		return body, &unsavedError{refusal}
	}
	base.Discard(stored{body}, &c.notes)
	after, err := p.apply(ctx, applier, body, &patch.Patch{}, &c.notes, c.finalizer)
	if refused(err) {
		err = &unsavedError{err}
	}
	return after, err
}

// sendPart sends the first part of a change that was refused as a whole. The status is
// sent last: a refused part must leave no status behind.
func (p *Processor) sendPart(ctx context.Context, applier apply.Applier, body *object.Body, c *change) (*object.Body, error) {
	part := c.parts[0]
	steps := []execute.Part{part}
	if p.Resource.HasStatus() {
		steps = []execute.Part{mainOnly(part), statusOnly(part, body)}
	}
	for _, step := range steps {
		after, err := p.apply(ctx, applier, body, &step.Patch, &patch.Patch{}, apply.Finalizer{})
		switch {
		case err == nil:
			body = after
			continue
		case !refused(err):
			return after, err
		case part.Refuse == nil:
			applier.Log.Error("Dropped the change of an event handler, because the API server refused it"+apply.Advice(err, p.Config.Webhooks)+".", "handler", part.Handler, "error", err)
		case body.Deleting && apply.TooLarge(err): // a deletion does not depend on saving
			applier.Log.Warn("Dropped the change of a handler, because it is too large for the object, which is being deleted.", "handler", part.Handler, "error", err)
		default:
			part.Refuse(fmt.Errorf("the API server refused the change: %w%s", err, apply.Advice(err, p.Config.Webhooks)))
		}
		c.next()
		return body, nil
	}
	c.accepted.Merge(statusFields(&part.Patch, body))
	c.next()
	return body, nil
}

// next removes the first part. It also updates the remaining parts, because a refusal
// may have changed them.
func (c *change) next() {
	done := c.parts[0].Handler
	c.parts = c.parts[1:]
	if c.current == nil {
		return
	}
	current := c.current()
	c.parts = slices.DeleteFunc(c.parts, func(p execute.Part) bool {
		return p.Handler != done && !slices.ContainsFunc(current, func(other execute.Part) bool { return other.Handler == p.Handler })
	})
	for i, p := range c.parts {
		for _, other := range current {
			if other.Handler == p.Handler {
				c.parts[i] = other
			}
		}
	}
}

// apply sends a patch. A panic in a user's edit is returned as an error.
func (p *Processor) apply(ctx context.Context, a apply.Applier, body *object.Body, asked, notes *patch.Patch, f apply.Finalizer) (after *object.Body, err error) {
	defer func() {
		if v := recover(); v != nil {
			after, err = body, &panicError{v, execute.PanicStack()}
		}
	}()
	if size := writeSize(body, asked, notes); p.Heavy.limits(size) {
		var leave func()
		if p.aside(body, func() { leave, err = p.Heavy.enter(ctx, body.Namespace, size) }); err != nil {
			return body, err
		}
		defer leave()
	}
	if p.Trail == nil {
		return a.Apply(ctx, body, asked, notes, f)
	}
	start := time.Now()
	after, err = a.Apply(ctx, body, asked, notes, f)
	if err != nil || after != body {
		p.Trail.Wrote(body.UID, err, start)
	}
	return after, err
}

// refused reports whether sending the change again is pointless.
func refused(err error) bool {
	_, panicked := errors.AsType[*panicError](err)
	return panicked || apply.Refused(err)
}

// unsavedError means that the API server refused the records of the operator.
type unsavedError struct{ err error }

func (e *unsavedError) Error() string {
	return "save the progress of handlers: the API server refused it: " + e.err.Error()
}
func (e *unsavedError) Unwrap() error { return e.err }

// panicError is a panic of a user's code outside of handlers, such as a filter.
type panicError struct {
	value any
	stack []byte
}

func (e *panicError) Error() string { return fmt.Sprintf("panic: %v", e.value) }
