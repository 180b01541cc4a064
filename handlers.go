package gopf

import (
	"context"
	"fmt"
	"regexp"
	"strings"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Reason is the reason for a call of a change handler. In declarations, reasons can be
// combined with |, as in Create|Update.
type Reason uint8

// The reasons for a call of a change handler.
const (
	Create Reason = 1 << iota // the object was never handled before
	Update                    // the object has changed since it was last handled
	Delete                    // the deletion of the object was requested
	Resume                    // the object was handled before this process started
)

var reasons = map[Reason]cause.Reason{
	Create: cause.Create, Update: cause.Update, Delete: cause.Delete, Resume: cause.Resume,
}

// reasonOf returns the public reason. 0 means that there is nothing to handle.
func reasonOf(of cause.Reason) Reason {
	for known, reason := range reasons {
		if reason == of {
			return known
		}
	}
	return 0
}

func (r Reason) String() string {
	var names []string
	for _, one := range []Reason{Create, Update, Delete, Resume} {
		if r&one != 0 {
			names = append(names, string(reasons[one]))
		}
	}
	return strings.Join(names, "|")
}

// OnCreate calls fn for every object that was never handled: new objects, and objects
// that existed before the operator was first deployed.
//
// fn is called until it returns nil, fails permanently, or exceeds its limits; see
// [ChangeFunc], [MaxAttempts] and [Timeout]. After that, it is never called again for this
// object, even after a restart. A crash between the call and the record of its success
// repeats the call, so fn should be idempotent; see [Change.Key].
//
// The id identifies the handler in the records on the object. It may contain letters,
// digits and, inside, -_./ characters. If you rename it, use [Formerly].
//
//	dbs.OnCreate("create", func(ctx context.Context, c *gopf.Change[*Database]) error {
//		c.Log.Info("A new database.", "size", c.Object.Spec.Size)
//		return nil
//	}, gopf.MaxAttempts(5))
func (r *Resource[T]) OnCreate(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Create, id, fn, opts...)
}

// OnUpdate calls fn when an object differs from the configuration that was handled
// last. The spec, labels, annotations and all other top-level fields count. The status
// and the rest of the metadata do not count, unless a handler is declared for such a
// field; see [Resource.Field].
//
// fn is called once for each change, with retries as for [Resource.OnCreate]. Changes
// that arrive while the object is being handled, or while the operator is not running,
// are combined: fn sees the difference between the last handled and the current state
// in [Change.Diff].
func (r *Resource[T]) OnUpdate(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Update, id, fn, opts...)
}

// OnDelete calls fn when the deletion of an object is requested. The operator adds its
// finalizer to every matching object beforehand, so the object exists until fn has
// returned nil, has failed permanently, or has exceeded its limits. Without limits, an
// fn that always fails blocks the deletion forever.
//
// A deletion ends the retries of all other handlers of the object. With [Optional], the
// object gets no finalizer, and fn may miss the deletion.
//
//	dbs.OnDelete("drop", drop, gopf.Timeout(time.Hour)) // then give up, and let the object go
func (r *Resource[T]) OnDelete(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Delete, id, fn, opts...)
}

// OnResume calls fn once per process for every object that was handled before the
// process started. Use it to restore connections or other state in memory.
//
// If the object has also changed meanwhile, fn is called together with the update
// handlers, and [Change.Reason] is [Update]. It is not called for new objects, nor for
// objects that are being deleted; [AlsoDeleted] includes the latter. For work that must
// also run for new objects, use [Resource.On] with Create|Resume.
func (r *Resource[T]) OnResume(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.On(Resume, id, fn, opts...)
}

// OnField calls fn when the field appears, changes or disappears, whatever the reason.
// It is short for [Resource.Field] and [FieldResource.OnChange].
//
// The path is dotted ("spec.size") or a JSON pointer
// ("/metadata/labels/app.kubernetes.io~1name"). It becomes part of the stored id, as in
// "resize/spec.size". [Change.Diff] is relative to the field, and [Change.OldValue] and
// [Change.NewValue] return its values. A field of the status is allowed: its changes
// are then handled.
//
//	dbs.OnField("resize", "spec.size", func(ctx context.Context, c *gopf.Change[*Database]) error {
//		c.Log.Info("Resizing.", "from", c.Old.Spec.Size, "to", c.Object.Spec.Size)
//		return nil
//	})
//
// For a new object that has the field, fn is called on its creation. It does not make
// deletions wait.
func (r *Resource[T]) OnField(id, path string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.Field(path).OnChange(id, fn, opts...)
}

// OnChange calls fn when the field appears, changes or disappears, whatever the reason;
// see [Resource.OnField].
func (r *FieldResource[T]) OnChange(id string, fn ChangeFunc[T], opts ...ChangeOption) {
	h := r.handler(Create|Update|Delete|Resume, id, fn, opts)
	h.AnyMove = true
	// It takes part only in deletions that wait for other handlers.
	h.Mandatory = false
	r.op.declare(h)
}

// On calls fn for any of the reasons, once for each change and with one record. Use it
// where several reasons need the same work:
//
//	dbs.On(gopf.Create|gopf.Update|gopf.Resume, "apply", apply)
//
// [Change.Reason] has the reason of the call. Two handlers of a resource may share an
// id only if their reasons are different.
func (r *Resource[T]) On(reasons Reason, id string, fn ChangeFunc[T], opts ...ChangeOption) {
	r.op.declare(r.handler(reasons, id, fn, opts))
}

// handler returns the handler without its Go type: the engine knows only raw objects.
func (r *Resource[T]) handler(on Reason, id string, fn ChangeFunc[T], opts []ChangeOption) *handler.Handler {
	var spec changeSpec
	for _, o := range opts {
		o.change(&spec)
	}
	switch {
	case fn == nil:
		r.op.problem("handler %q has no function", id)
	case on&^(Create|Update|Delete|Resume) != 0 || on == 0:
		r.op.problem("handler %q has no valid reasons; use Create, Update, Delete or Resume", id)
	case spec.optional && on&Delete == 0:
		r.op.problem("handler %q: Optional is for deletion handlers", id)
	case spec.skip:
		r.op.problem("handler %q: If works only for sub-handlers; do not declare the handler instead", id)
	case spec.last, len(spec.after) > 0, spec.misplaced:
		r.op.problem("handler %q: DependsOn and Finally work only for sub-handlers, and options of Want only for children", id)
	case spec.filters != nil:
		r.op.problem("handler %q: a handle as an option is for sub-handlers; declare the handler on that handle", id)
	case spec.deleted && on&Resume == 0:
		r.op.problem("handler %q: AlsoDeleted is for resuming handlers", id)
	}
	h := &handler.Handler{
		ID: storedID(id, r.field), Formerly: storedIDs(spec.formerly, r.field), Where: caller(),
		Of: r.of, Type: typeOf[T](), Select: r.selected, HandOver: r.handOver, Managed: r.managed, Reasons: map[cause.Reason]bool{},
		Deleted:   spec.deleted,
		Mandatory: on&Delete != 0 && !spec.optional,
		Criteria:  r.criteria, Change: r.field, When: r.when, WhenAt: r.whenAt,
		Limits: spec.limits,
		Call:   erase(fn, &r.op.hooks),
	}
	for one, known := range reasons {
		if on&one != 0 {
			h.Reasons[known] = true
		}
	}
	return h
}

// erase returns a function that decodes the object of a request and calls fn. hooks may be
// nil.
func erase[T Object](fn ChangeFunc[T], hooks *hooks) func(context.Context, *handler.Request) error {
	return func(ctx context.Context, req *handler.Request) error {
		c, err := newChange[T](req)
		if err != nil {
			return &handler.UndecodableError{Err: err}
		}
		c.hooks = hooks
		return hooks.call(ctx, callOf(req, "change", &c.Log), func(ctx context.Context) error { return c.run(ctx, fn) })
	}
}

func storedID(id string, change *handler.Change) string {
	if change == nil {
		return id
	}
	return id + "/" + jsonvalue.Path(change.Path).String()
}

func storedIDs(ids []string, change *handler.Change) []string {
	var stored []string
	for _, id := range ids {
		stored = append(stored, storedID(id, change))
	}
	return stored
}

// storable matches ids that can be the name part of an annotation key.
var storable = regexp.MustCompile(`^[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?$`)

// storedName converts any text to a valid id.
func storedName(text string) string {
	return strings.Trim(unstorable.ReplaceAllString(text, "-"), "-_.")
}

var unstorable = regexp.MustCompile(`[^-A-Za-z0-9_.]+`)

// checkID returns an error if the id cannot be stored on an object.
func checkID(id string) error {
	name := strings.NewReplacer("/", ".", "<", "_", ">", "_").Replace(id)
	switch {
	case id == "":
		return fmt.Errorf("a handler has no id")
	case name == "gopf.handling" || name == "gopf.bound" || strings.HasPrefix(name, "gopf.children"):
		return fmt.Errorf("the id %q is reserved for Gopf's own records; use another one", id)
	case !storable.MatchString(name):
		return fmt.Errorf("the id %q cannot be stored on objects; use letters, digits and, inside, -_./", id)
	}
	return nil
}
