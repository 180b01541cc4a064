package gopf

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
)

// Sub declares a sub-handler: a part of this handler's work with its own id, attempts
// and result. Its stored id is "parent/id". It runs after this handler has returned
// nil, or in [Change.RunSubs].
//
// This handler is called again until all of its sub-handlers are done, so it must
// declare the same ones each time. Each such call counts as an attempt. Finished
// sub-handlers are not called again. A sub-handler that fails permanently counts as
// done, and the others are still called: use [DependsOn] for steps that need each other,
// and [Finally] for one that runs last.
//
//	for _, user := range c.Object.Spec.Users {
//		c.Sub(user, func(ctx context.Context, c *gopf.Change[*Database]) error {
//			return addUser(ctx, user)
//		}, gopf.MaxAttempts(3))
//	}
//
// A handle as an option restricts the sub-handler by its filters; see [Change.Filter].
//
// These mistakes fail this handler permanently: a missing function, an invalid or
// duplicate id, options that do not apply to sub-handlers, such as [Optional], and more
// than 2,000 sub-handlers in one call.
//
// The returned value is never nil. It is for DependsOn, and to ask for the outcome.
func (c *Change[T]) Sub(id string, fn ChangeFunc[T], opts ...ChangeOption) *SubHandler {
	var spec changeSpec
	for _, o := range opts {
		o.change(&spec)
	}
	declared := &SubHandler{id: id, req: c.req}
	if spec.skip {
		return declared
	}
	if len(c.subs) == maxSubs { // the number may come from the object
		c.mistaken(errTooManySubs)
		return declared
	}
	if n := len(c.subs); n > 0 && n%fewSubs == 0 && c.req.Reserve != nil {
		if err := c.req.Reserve(memoryOfSubs(c.subs[n-fewSubs:])); err != nil {
			c.mistaken(RetryAfter(retrySubs, err))
			return declared
		}
	}
	parent := c.req.Handler
	sub := &handler.Handler{
		ID: parent.ID + "/" + id, Where: caller(), Of: parent.Of,
		Reasons: map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true},
		Deleted: true,
		Change:  parent.Change,
		Last:    spec.last,
		Limits:  spec.limits,
		Call:    erase(fn, c.hooks),
	}
	sub.DependsOn = make([]string, 0, len(spec.after))
	for _, on := range spec.after {
		if on.handler != nil {
			sub.DependsOn = append(sub.DependsOn, on.handler.ID)
		}
	}
	for _, former := range spec.formerly {
		sub.Formerly = append(sub.Formerly, parent.ID+"/"+former)
	}
	if f := spec.filters; f != nil {
		sub.Criteria, sub.When, sub.WhenAt = f.criteria, f.when, f.whenAt
		if f.change != nil {
			sub.Change = f.change
			sub.ID, sub.Formerly = storedID(sub.ID, f.change), storedIDs(sub.Formerly, f.change)
		}
	}
	if err := c.checkSub(id, sub, fn == nil, &spec); err != nil {
		c.mistaken(Permanent(fmt.Errorf("sub-handler %q of %q: %w", id, parent.ID, err)))
		return declared
	}
	if spec.filters == nil || sub.Matches(c.req) {
		c.ran = false
		c.subs = append(c.subs, sub)
		if c.ids == nil {
			c.ids = map[string]bool{}
		}
		c.ids[sub.ID] = true
		c.declared = append(c.declared, declared)
		declared.handler = sub
	}
	return declared
}

const (
	// maxSubs limits the sub-handlers of one call. Each of them takes memory, and has a
	// record on the object.
	maxSubs = 2000
	// fewSubs is the number of sub-handlers up to which their memory is not limited, and
	// subMemory is the approximate memory of each, in bytes.
	fewSubs   = 100
	subMemory = 3 << 10
	// dependencyMemory is the memory of each dependency, in bytes. Each sub-handler may depend on
	// all others.
	dependencyMemory = 16
	// retrySubs is the delay after which a call is repeated that got no memory.
	retrySubs = 10 * time.Second
	// maxMistakes limits the reported mistakes of one call. Ids may come from the object.
	maxMistakes = 10
)

// memoryOfSubs returns the approximate memory of sub-handlers in bytes.
func memoryOfSubs(subs []*handler.Handler) int {
	bytes := len(subs) * subMemory
	for _, sub := range subs {
		bytes += len(sub.DependsOn) * dependencyMemory
	}
	return bytes
}

var errTooManySubs = Permanent(fmt.Errorf("the handler declares more than %d sub-handlers for one object", maxSubs))

// mistaken notes a mistake in the declaration of a sub-handler.
func (c *Change[T]) mistaken(err error) {
	if len(c.mistake) < maxMistakes {
		c.mistake = append(c.mistake, err)
	}
}

// checkSub returns the mistakes in the declaration of a sub-handler.
func (c *Change[T]) checkSub(id string, sub *handler.Handler, missing bool, spec *changeSpec) error {
	switch f := spec.filters; {
	case id == "":
		return errors.New("it has no id")
	case missing:
		return errors.New("it has no function")
	case spec.optional:
		return errors.New("Optional does not apply to sub-handlers; pass it to their parent")
	case spec.misplaced:
		return errors.New("an option of Want does not apply to sub-handlers")
	case spec.last && len(spec.after) > 0:
		return errors.New("Finally waits for all others: remove DependsOn")
	case slices.ContainsFunc(spec.after, func(on *SubHandler) bool { return on.req != c.req }):
		return errors.New("it depends on a sub-handler of another call")
	case slices.ContainsFunc(spec.after, func(on *SubHandler) bool { return on.handler != nil && on.handler.Last }):
		return errors.New("it depends on a sub-handler that runs last")
	case spec.deleted:
		return errors.New("AlsoDeleted does not apply to sub-handlers; pass it to their parent")
	case f != nil && f.of != sub.Of.String():
		return fmt.Errorf("its filters are for %s, not for %s", f.of, sub.Of)
	case f != nil && f.selected != "":
		return errors.New("Select does not apply to sub-handlers; use WithLabel instead")
	case f != nil && len(f.problems) > 0:
		return errors.Join(f.problems...)
	case c.ids[sub.ID]:
		return errors.New("it is declared twice: both would share one record; use different ids")
	}
	return errors.Join(checkID(sub.ID), joined(checkLimits(spec.limits)))
}

// filters are the filters of a handle that is an option of a sub-handler.
type filters struct {
	of       string
	selected string
	criteria handler.Criteria
	change   *handler.Change
	when     []func(*handler.Request) bool
	whenAt   []string
	problems []error
}

// change makes a handle an option of [Change.Sub].
func (r *Resource[T]) change(s *changeSpec) {
	f := &filters{of: r.of.String(), selected: r.selected, criteria: r.criteria, change: r.field, when: r.when, whenAt: r.whenAt}
	if r.op.detached {
		f.problems = slices.Clone(r.op.problems)
	}
	if s.filters != nil {
		f.problems = append(f.problems, errors.New("it has the filters of two handles; combine them in one"))
	}
	s.filters = f
}

// Filter returns a handle without filters, to be restricted and passed to [Change.Sub].
// The sub-handler is called only for objects and changes that match:
//
//	c.Sub("notify", notify, c.Filter().WithLabel("tier", gopf.Is("prod")))
//	c.Sub("resize", resize, c.Filter().Field("spec.size")) // stored as "parent/resize/spec.size"
//
// Handles of the operator for the same resource can be passed as well. Handlers cannot
// be declared on the handle: this fails the calling handler permanently.
func (c *Change[T]) Filter() *Resource[T] {
	if c.filter == nil {
		c.filter = New()
		c.filter.detached = true
	}
	return &Resource[T]{op: c.filter, of: c.req.Handler.Of}
}

// RunSubs runs the sub-handlers declared so far now, instead of after the handler. A nil
// error means that all have succeeded.
//
// An error means that some are unfinished, or that some have failed permanently and none
// is unfinished. The latter is a [SubsError]. Return either error from the handler: it is
// called again, or it fails permanently. Without RunSubs, a handler succeeds even if some
// of its sub-handlers fail, as in Kopf.
//
// While they run, this handler's own Patch and SetResult must not be used; such changes
// are logged and dropped. Sub-handlers must use their own argument.
func (c *Change[T]) RunSubs(ctx context.Context, opts ...SubOption) error {
	c.ran = true
	if err := c.mistakes(); err != nil || len(c.subs) == 0 {
		return err
	}
	var how subSpec
	for _, o := range opts {
		o.sub(&how)
	}
	defer c.freeze()()
	if err := c.req.RunSubs(ctx, c.subs, handler.SubOptions(how)); err != nil {
		return err
	}
	return c.failedSubs(ctx)
}

// mistakes returns the mistakes in the declarations of sub-handlers.
func (c *Change[T]) mistakes() error {
	if c.filter != nil && len(c.filter.problems) > 0 && len(c.mistake) == 0 {
		return Permanent(errors.Join(c.filter.problems...))
	}
	return errors.Join(c.mistake...)
}

// SubOption is an option of [Change.RunSubs].
type SubOption interface{ sub(*subSpec) }

type subSpec handler.SubOptions

type subOption func(*subSpec)

func (o subOption) sub(s *subSpec) { o(s) }

// Parallel runs up to n of the selected sub-handlers concurrently. Default: one at a
// time. It needs a lifecycle that selects several, such as [AllAtOnce]; see
// [InOrderOf].
func Parallel(n int) SubOption { return subOption(func(s *subSpec) { s.Parallel = n }) }

// InOrderOf sets the lifecycle of the sub-handlers. Default: the operator's lifecycle.
func InOrderOf(l Lifecycle) SubOption {
	return subOption(func(s *subSpec) { s.Lifecycle = l.inEngine() })
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

func (d *droppedPatch) SetNested(_ any, path []string) (made, all int) {
	d.complain(strings.Join(path, "."))
	return 0, 0
}

func (d *droppedPatch) Charge(_, _ int) bool { return true }

func (d *droppedPatch) Merge(_ any, path ...string)                  { d.complain(strings.Join(path, ".")) }
func (d *droppedPatch) Join(part any, _ func(map[string]any, []any)) { d.complain("an edit") }
