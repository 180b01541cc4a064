package gopf

import (
	"context"
	"errors"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
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
	// not fit T are zero, and so are all of them if it would take far more memory than its JSON and
	// than Object.
	Old T
	// Diff is the difference between Old and Object. For handlers of a field, it is
	// relative to the field.
	Diff diff.Diff

	subs     []*handler.Handler
	declared []*SubHandler   // for each of subs
	ran      bool            // the sub-handlers declared so far were run
	ids      map[string]bool // of subs
	mistake  []error         // in the declarations of sub-handlers
	filter   *Operator       // collects the mistakes in filters of sub-handlers. May be nil.
	hooks    *hooks
}

func newChange[T Object](req *handler.Request) (*Change[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	c := req.Handler.Narrow(req.Cause)
	return &Change[T]{Subject: s, Reason: reasonOf(c.Reason), Diff: c.Diff, Old: decodeOld[T](c.Old, req.Body)}, nil
}

// run calls the handler, and then those of its sub-handlers that it has not run itself.
func (c *Change[T]) run(ctx context.Context, fn ChangeFunc[T]) error {
	err := fn(ctx, c)
	c.hooks.check(c)
	if err != nil {
		return err
	}
	if c.ran {
		return c.mistakes()
	}
	if err := c.RunSubs(ctx); !errors.As(err, new(*SubsError)) {
		return err
	}
	return nil // as in Kopf, the handler succeeds when its sub-handlers are done
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
	return valueAt(essence, c.field())
}

func (c *Change[T]) lookupOld(path []string) (any, bool) { return valueAt(c.req.Cause.Old, path) }

// valueAt returns the value at a path of an essence. A nil essence has no values.
func valueAt(essence map[string]any, path []string) (v any, present bool) {
	if essence == nil {
		return nil, false
	}
	return jsonvalue.Lookup(essence, path...)
}

func (c *Change[T]) field() []string {
	if of := c.req.Handler.Change; of != nil {
		return of.Path
	}
	return nil
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
