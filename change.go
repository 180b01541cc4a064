package gopf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
)

// Change is the argument of a change handler: the object, its last handled
// configuration, and the difference between them. It belongs to one call and must not
// be used after the handler has returned.
//
//	func update(ctx context.Context, c *gopf.Change[*Database]) error {
//		if c.Old.Spec.Size > c.Object.Spec.Size {
//			return gopf.Permanent(errors.New("a database cannot shrink"))
//		}
//		c.Patch.Set("status.size", c.Object.Spec.Size)
//		return nil
//	}
type Change[T Object] struct {
	*Subject[T]

	// Reason is the reason for the call. A resume handler that is called together with
	// an update or a deletion has that reason.
	Reason Reason
	// Old is the last handled configuration. It has no status and hardly any metadata.
	// It is never nil; on creation it is empty, apart from the identity. Fields that do
	// not fit T are zero.
	Old T
	// Diff is the difference between Old and Object. For handlers of a field, it is
	// relative to the field.
	Diff diff.Diff

	subs    []*handler.Handler
	ran     bool  // the sub-handlers declared so far were run
	mistake error // in the declarations of sub-handlers. May be nil.
	lost    *lostEdits
}

func newChange[T Object](req *handler.Request) (*Change[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	c := req.Handler.Narrow(req.Cause)
	change := &Change[T]{Subject: s, Diff: c.Diff, Old: decodeOld[T](c.Old, req.Body)}
	for known, reason := range reasons {
		if reason == c.Reason {
			change.Reason = known
		}
	}
	return change, nil
}

// run calls the handler, and then those of its sub-handlers that it has not run itself.
func (c *Change[T]) run(ctx context.Context, fn ChangeFunc[T]) error {
	err := fn(ctx, c)
	c.lost.check(c)
	if err != nil {
		return err
	}
	if c.ran {
		return c.mistake
	}
	return c.RunSubs(ctx)
}

// Key returns a string that identifies this handler's work on this change. It is the
// same for all attempts, even after restarts, and differs for the next change. Pass it
// to other systems as an idempotency key.
//
// If labels or annotations change back and forth, two changes with the same old and new
// values have the same key.
func (c *Change[T]) Key() string { return c.req.Key() }

// OldRaw returns the last handled configuration as decoded JSON. It is nil on creation.
// The map is shared: do not modify it.
func (c *Change[T]) OldRaw() map[string]any { return c.req.Cause.Old }

// OldValue returns the value of the handler's field in the last handled configuration.
// present is false if there is none. Without a field, it returns the whole
// configuration.
func (c *Change[T]) OldValue() (v any, present bool) { return c.value(c.req.Cause.Old) }

// NewValue returns the current value of the handler's field. present is false if there
// is none. Without a field, it returns the whole configuration.
func (c *Change[T]) NewValue() (v any, present bool) { return c.value(c.req.Cause.New) }

func (c *Change[T]) value(essence map[string]any) (any, bool) {
	if essence == nil {
		return nil, false
	}
	return jsonvalue.Lookup(essence, c.field()...)
}

func (c *Change[T]) lookupOld(path []string) (any, bool) {
	return jsonvalue.Lookup(c.req.Cause.Old, path...)
}

func (c *Change[T]) field() []string {
	if of := c.req.Handler.Change; of != nil {
		return of.Path
	}
	return nil
}

// Sub declares a sub-handler: a part of this handler's work with its own id, attempts
// and result. Its stored id is "parent/id". It runs after this handler has returned
// nil, or in [Change.RunSubs].
//
// This handler is called again until all of its sub-handlers are done, so it must
// declare the same ones each time. Each such call counts as an attempt. Finished
// sub-handlers are not called again. A sub-handler that fails permanently counts as
// done.
//
//	for _, user := range c.Object.Spec.Users {
//		c.Sub(user, func(ctx context.Context, c *gopf.Change[*Database]) error {
//			return addUser(ctx, user)
//		}, gopf.MaxAttempts(3))
//	}
//
// A missing function, an invalid id or a duplicate id fails this handler permanently.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	var spec changeSpec
	for _, o := range opts {
		o.change(&spec)
	}
	parent := c.req.Handler
	full := parent.ID + "/" + id
	if err := errors.Join(checkSub(id, full, fn == nil), joined(checkLimits(spec.limits))); err != nil {
		c.mistake = errors.Join(c.mistake, Permanent(fmt.Errorf("sub-handler %q of %q: %w", id, parent.ID, err)))
		return
	}
	if slices.ContainsFunc(c.subs, func(h *handler.Handler) bool { return h.ID == full }) {
		c.mistake = errors.Join(c.mistake, Permanent(fmt.Errorf("sub-handler %q of %q is declared twice: both would share one record; use different ids", id, parent.ID)))
		return
	}
	var formerly []string
	for _, former := range spec.formerly {
		formerly = append(formerly, parent.ID+"/"+former)
	}
	c.ran = false
	c.subs = append(c.subs, &handler.Handler{
		ID: full, Where: caller(), Of: parent.Of,
		Reasons: map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true},
		Deleted: true,
		Change:  parent.Change,
		Limits:  spec.limits, Formerly: formerly,
		Call: erase(fn, c.lost),
	})
}

// RunSubs runs the sub-handlers declared so far now, instead of after the handler. An
// error means that some are unfinished: return it from the handler.
//
// While they run, this handler's own Patch and SetResult must not be used; such changes
// are logged and dropped. Sub-handlers must use their own argument.
func (c *Change[T]) RunSubs(ctx context.Context, opts ...SubOption) error {
	c.ran = true
	if c.mistake != nil || len(c.subs) == 0 {
		return c.mistake
	}
	var how handler.SubOptions
	for _, o := range opts {
		o(&how)
	}
	defer c.freeze()()
	return c.req.RunSubs(ctx, c.subs, how)
}

// freeze drops all changes requested through c until undo is called. Without it, a
// sub-handler that uses its parent's argument by mistake would lose its changes
// whenever the parent is called again.
func (c *Change[T]) freeze() (undo func()) {
	patch := c.Patch.p
	dropped := &droppedPatch{log: c.Log, handler: c.req.Handler.ID}
	c.Patch.p, c.frozen = dropped, dropped
	return func() { c.Patch.p, c.frozen = patch, nil }
}

// droppedPatch logs changes that were requested through the wrong argument.
type droppedPatch struct {
	log     *slog.Logger
	handler string
}

func (d *droppedPatch) complain(what string) {
	d.log.Error("A sub-handler changed its parent's argument. The change was dropped; use the sub-handler's own argument.",
		"handler", d.handler, "dropped", what)
}

func (d *droppedPatch) Set(_ any, path ...string)   { d.complain(strings.Join(path, ".")) }
func (d *droppedPatch) Merge(_ any, path ...string) { d.complain(strings.Join(path, ".")) }
func (d *droppedPatch) Edit(patch.Edit)             { d.complain("an edit") }

func checkSub(id, full string, missing bool) error {
	switch {
	case id == "":
		return errors.New("it has no id")
	case missing:
		return errors.New("it has no function")
	}
	return checkID(full)
}

// WithResult returns a handler that stores the result of fn in the status, under the
// handler's id. With an error, no result is stored; see [Subject.SetResult].
func WithResult[T Object, R any](fn func(context.Context, *Change[T]) (R, error)) ChangeFunc[T] {
	return func(ctx context.Context, c *Change[T]) error {
		r, err := fn(ctx, c)
		if err == nil {
			c.SetResult(r)
		}
		return err
	}
}
