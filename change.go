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
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// Change is what a handler is told about a change of its object.
type Change[T Object] struct {
	*Subject[T]

	// Reason is why the handler is called: one of the reasons it is declared
	// for, or the one that a resuming handler was called along with.
	Reason Reason
	// Old is the object as it was last handled, without its status and most of
	// its metadata; never nil, and empty on creation.
	Old T
	// Diff is what has changed since; for handlers about a field, relative to
	// the field.
	Diff diff.Diff

	subs    []*registry.Handler
	ran     bool  // the sub-handlers declared so far have been run
	mistake error // in the declaration of a sub-handler
}

func newChange[T Object](req *registry.Request) (*Change[T], error) {
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

// run calls the handler and then those of its sub-handlers that it has not run
// itself.
func (c *Change[T]) run(ctx context.Context, fn ChangeFunc[T]) error {
	if err := fn(ctx, c); err != nil {
		return err
	}
	if c.ran {
		return c.mistake
	}
	return c.RunSubs(ctx)
}

// Key identifies this handler's work on this change: it is the same for all
// attempts, also after restarts, and another for the next change. It makes
// requests to other systems repeatable without doing things twice. (Two changes
// of labels or annotations that are the same, with others in between, have the
// same key.)
func (c *Change[T]) Key() string { return c.req.Key() }

// OldRaw is the object as it was last handled, as decoded JSON; nil on
// creation. It is shared: do not change it.
func (c *Change[T]) OldRaw() map[string]any { return c.req.Cause.Old }

// OldValue is the value that the handler's field had, if any; for handlers
// about no field, that of the whole.
func (c *Change[T]) OldValue() (v any, present bool) { return c.value(c.req.Cause.Old) }

// NewValue is the value that the handler's field has now, if any; for handlers
// about no field, that of the whole.
func (c *Change[T]) NewValue() (v any, present bool) { return c.value(c.req.Cause.New) }

func (c *Change[T]) value(essence map[string]any) (any, bool) {
	if essence == nil {
		return nil, false
	}
	return fieldpath.Lookup(essence, c.field()...)
}

func (c *Change[T]) lookupOld(path []string) (any, bool) {
	return fieldpath.Lookup(c.req.Cause.Old, path...)
}

func (c *Change[T]) field() []string {
	if of := c.req.Handler.Change; of != nil {
		return of.Path
	}
	return nil
}

// Sub declares a sub-handler: a part of this handler's work with an id,
// attempts and a result of its own. It runs after this handler has returned
// nil, or in RunSubs; this handler is done when all its sub-handlers are, and
// is called again until then, so it must declare the same ones each time. A
// sub-handler that fails for good counts as done.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	var spec changeSpec
	for _, o := range opts {
		o.change(&spec)
	}
	if spec.skip {
		return
	}
	parent := c.req.Handler
	full := parent.ID + "/" + id
	if err := errors.Join(checkSub(id, full, fn == nil), joined(checkLimits(spec.limits))); err != nil {
		c.mistake = errors.Join(c.mistake, Permanent(fmt.Errorf("sub-handler %q of %q: %w", id, parent.ID, err)))
		return
	}
	if slices.ContainsFunc(c.subs, func(h *registry.Handler) bool { return h.ID == full }) {
		c.mistake = errors.Join(c.mistake, Permanent(fmt.Errorf("sub-handler %q of %q is declared twice: the two would share one record", id, parent.ID)))
		return
	}
	var formerly []string
	for _, former := range spec.formerly {
		formerly = append(formerly, parent.ID+"/"+former)
	}
	c.ran = false
	c.subs = append(c.subs, &registry.Handler{
		ID: full, Where: caller(), Of: parent.Of,
		Reasons: map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true},
		Deleted: true,
		Change:  parent.Change,
		Limits:  spec.limits, Formerly: formerly,
		Call: erase(fn),
	})
}

// RunSubs runs the sub-handlers declared so far now rather than at the end. An
// error means that some are not finished; return it.
//
// While they run, this handler's own Patch and SetResult are not to be used:
// what a sub-handler has to say goes to the struct that it is given itself.
func (c *Change[T]) RunSubs(ctx context.Context, opts ...SubOption) error {
	c.ran = true
	if c.mistake != nil || len(c.subs) == 0 {
		return c.mistake
	}
	var how registry.SubOptions
	for _, o := range opts {
		o(&how)
	}
	defer c.freeze()()
	return c.req.RunSubs(ctx, c.subs, how)
}

// freeze drops what is asked for through this struct, until it is undone. A
// sub-handler that writes to its parent's by mistake would otherwise lose its
// changes whenever the parent is called again.
func (c *Change[T]) freeze() (undo func()) {
	patch := c.Patch.p
	dropped := &droppedPatch{log: c.Log, handler: c.req.Handler.ID}
	c.Patch.p, c.frozen = dropped, dropped
	return func() { c.Patch.p, c.frozen = patch, nil }
}

// droppedPatch complains about changes that come from the wrong place.
type droppedPatch struct {
	log     *slog.Logger
	handler string
}

func (d *droppedPatch) complain(what string) {
	d.log.Error("A sub-handler has used what belongs to the handler it is a part of, and it is dropped: use the struct that the sub-handler is given.",
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

// WithResult makes a handler of a function that returns a value for the status.
func WithResult[T Object, R any](fn func(context.Context, *Change[T]) (R, error)) ChangeFunc[T] {
	return func(ctx context.Context, c *Change[T]) error {
		r, err := fn(ctx, c)
		if err == nil {
			c.SetResult(r)
		}
		return err
	}
}
