package gopf

import (
	"context"

	"gopf.dev/gopf/internal/handler"
)

// WatchEvent is the argument of an event handler: one watch event and its object.
type WatchEvent[T Object] struct {
	*Subject[T]

	// Type is "ADDED", "MODIFIED" or "DELETED". List items, at startup or after a
	// disconnection, have the type "": they may be new, changed or unchanged.
	Type string
	// Missed reports that the deletion happened while the operator was not watching,
	// and was detected by a later list. Object then has only its namespace, name and
	// UID.
	Missed bool
}

// OnEvent calls fn once for every watch event, in order, including those caused by the
// operator's own writes. Nothing is recorded; errors are logged and not retried. List
// items at startup and after a disconnection are passed to fn as events without a type.
//
// Use it to observe objects cheaply: event handlers need neither a finalizer nor
// annotations. The patch and the result of fn are written. Each write causes another
// event, so fn must not change the object unconditionally.
//
//	pods.OnEvent("log", func(ctx context.Context, e *gopf.WatchEvent[*corev1.Pod]) error {
//		e.Log.Info("Pod event.", "type", e.Type, "phase", e.Object.Status.Phase)
//		return nil
//	})
//
// On a handle for one field, fn is called for objects that have the field, or whose
// field matches [FieldResource.Value]. As in Kopf, the path becomes part of the stored
// id, and the field becomes part of the handled configuration.
func (r *Resource[T]) OnEvent(id string, fn func(context.Context, *WatchEvent[T]) error) {
	if fn == nil {
		r.op.problem("handler %q has no function", id)
		return
	}
	if r.field != nil && (r.field.Old != nil || r.field.New != nil) {
		r.op.problem("handler %q: events have no old value; use Value instead of Changed", id)
		return
	}
	r.op.declare(&handler.Handler{
		Family: handler.Events, ID: storedID(id, r.field), Where: caller(), Of: r.of, Type: typeOf[T](), Select: r.selected, HandOver: r.handOver, Managed: r.managed,
		Criteria: r.criteria, Change: r.field, When: r.when, WhenAt: r.whenAt,
		Call: func(ctx context.Context, req *handler.Request) error {
			s, err := newSubject[T](req)
			if err != nil {
				return &handler.UndecodableError{Err: err}
			}
			defer r.op.hooks.check(s)
			e := &WatchEvent[T]{Subject: s, Type: req.Event, Missed: req.Missed}
			return r.op.hooks.call(ctx, callOf(req, "event", &s.Log), func(ctx context.Context) error { return fn(ctx, e) })
		},
	})
}
