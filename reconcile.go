package gopf

import (
	"context"
	"fmt"
	"reflect"
	"time"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/terminal"
)

// Reconciliation is the argument of a reconcile handler. Declare the children of the
// object with [Want]. It belongs to one call.
type Reconciliation[T Object] struct{ *Subject[T] }

// RequeueAfter calls the handler again after d if this call succeeds, even if nothing
// changes. The shortest delay of several calls counts. A negative d means 0.
func (r *Reconciliation[T]) RequeueAfter(d time.Duration) {
	again := &r.req.Children.Again
	if d = max(d, 0); !again.Set || d < again.Is {
		*again = handler.Some(d)
	}
}

// Reconcile calls fn to declare the children that an object should have. The operator
// creates and changes them, repairs changes of other clients, deletes children that fn no
// longer declares, and reports progress in the status conditions. When the object is
// deleted, its children are deleted as well, without a call of fn.
//
//	dbs.Reconcile("children", func(ctx context.Context, r *gopf.Reconciliation[*Database]) error {
//		set := gopf.Want(r, statefulSet(r.Object))
//		gopf.Want(r, service(r.Object), gopf.DependsOn(set))
//		r.Patch.MergeStatus(map[string]any{"replicas": set.Live().Status.ReadyReplicas})
//		return nil
//	}, gopf.Owns[*appsv1.StatefulSet](), gopf.Owns[*corev1.Service]())
//
// fn is called when the object has changed (see [Resource.OnUpdate] for what counts), when
// a child or an object of [Watches] was changed or deleted, and once per object after each
// start. [Every], [Reconciliation.RequeueAfter] and errors cause further calls. fn must
// declare all children in every call. Calls for one object never overlap, and never run at
// the same time as its change handlers. The returned error decides what happens to the
// children:
//
//   - nil: the children are applied, and undeclared ones are deleted.
//   - [Wait]: the children are applied, none is deleted, and fn is called again.
//   - [Permanent]: nothing is written to children, and fn is not called until the object changes.
//   - Any other error: nothing is written to children, and fn is called again. The delay is
//     1 s and doubles up to 5 minutes, unless [Backoff] sets a constant one.
//
// Children are written by server-side apply with the name of the operator as the field
// manager, so the operator requires an [Identity]. A write that would change nothing is
// not sent. An object of that name that is not a child of this object is never changed;
// see [AdoptExisting].
func (r *Resource[T]) Reconcile(id string, fn func(context.Context, *Reconciliation[T]) error, opts ...ReconcileOption) {
	spec := reconcileSpec{op: r.op, id: id, of: reflect.TypeFor[T]()}
	for _, o := range opts {
		o.reconcile(&spec)
	}
	switch {
	case fn == nil:
		r.op.problem("handler %q has no function", id)
		return
	case r.op.name == "":
		r.op.problem("handler %q: Reconcile requires a name of the operator; use gopf.New(gopf.Identity(\"NAME.example.com\"))", id)
	case r.field != nil:
		r.op.problem("handler %q: Reconcile is for whole objects; use WithField to filter them", id)
	}
	r.op.checkSpans(id, spec.spans...)
	r.op.declare(&handler.Handler{
		Family: handler.Reconciles, ID: id, Where: caller(), Of: r.of, Type: typeOf[T](), Select: r.selected, HandOver: r.handOver, Managed: r.managed,
		Criteria: r.criteria, When: r.when, WhenAt: r.whenAt, Limits: spec.limits, Reconcile: &spec.Reconcile,
		Call: eraseReconcile(fn, spec.refer, &r.op.hooks),
	})
}

// eraseReconcile returns a function that decodes the object of a request and calls fn.
// refer returns the objects that an object refers to; see [Watches].
func eraseReconcile[T Object](fn func(context.Context, *Reconciliation[T]) error, refer func(any) []handler.Reference, hooks *hooks) func(context.Context, *handler.Request) error {
	return func(ctx context.Context, req *handler.Request) error {
		s, err := newSubject[T](req)
		if err != nil {
			return &handler.UndecodableError{Err: err}
		}
		defer hooks.check(s)
		if req.Children.Refer != nil && len(req.Handler.Reconcile.Watched) > 0 {
			refs := refer(s.Object)
			if len(refs) > children.MaxEntries { // the number may come from the object
				return &handler.PermanentError{Err: errTooManyReferences}
			}
			req.Children.Refer(refs) // before fn reads these objects: no change is missed
		}
		ctx = handler.WithChildren(ctx, req.Children)
		return hooks.call(ctx, callOf(req, "reconcile", &s.Log), func(ctx context.Context) error { return fn(ctx, &Reconciliation[T]{s}) })
	}
}

var errTooManyReferences = fmt.Errorf("the functions of Watches return more than %d names for one object", children.MaxEntries)

const (
	// manyConditions is the number of conditions of one call from which messages are cut at
	// shortMessage bytes: they are kept until the patch is sent, and may repeat a text of the object.
	manyConditions = 100
	shortMessage   = 1 << 10
)

// SetCondition sets a status condition of the object, for any handler. It is sent with the
// other changes of [Patch]. The transition time changes only if the status does, and the
// observed generation is that of Object. Reason is one word in CamelCase; it must not be
// empty. The schema of the kind must have status.conditions. A message is cut at 32 KiB, and at 1 KiB
// from the 101st call on.
//
//	c.SetCondition("BackupReady", false, "NoBucket", "The bucket does not exist.")
//
// A reconcile handler must not set Ready, Reconciling or Stalled: the operator does, unless
// the handler has [NoConditions].
func (s *Subject[T]) SetCondition(kind string, status bool, reason, message string) {
	if s.frozen != nil {
		s.frozen.complain("the condition")
		return
	}
	if s.conditions++; s.conditions > manyConditions {
		message = terminal.Cut(message, shortMessage)
	}
	c := children.Condition{Type: kind, Status: status, Reason: reason, Message: children.CutMessage(message), Generation: s.req.Body.Generation()}
	s.Patch.p.Join(children.DatedCondition{Condition: c, At: time.Now()}, children.SetConditions)
}
