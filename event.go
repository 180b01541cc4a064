package gopf

import (
	"context"

	"gopf.dev/gopf/internal/registry"
)

// Event is what a handler is told about an event of its object.
type Event[T Object] struct {
	*Subject[T]

	// Type is what happened: "ADDED", "MODIFIED", "DELETED", or "" if the object
	// was only found in a listing, at the start or after a disconnection.
	Type string
	// Missed tells that the deletion happened while nobody was watching and was
	// found out later. Then the object has only its namespace, name and uid.
	Missed bool
}

// EventFunc handles an event of an object.
type EventFunc[T Object] func(context.Context, *Event[T]) error

// OnEvent calls fn once for every watch event, in order, including those caused
// by the operator's own writes. Nothing is recorded; errors are logged and not
// retried.
//
// On a handle that is about one field, it calls fn for objects that have the
// field, or a field with a fitting [FieldResource.Value]. The path becomes part of
// the stored id, and a change of the field counts as a change of the object, as
// in Kopf. So operators of both kinds agree on what was handled.
func (r *Resource[T]) OnEvent(id string, fn EventFunc[T]) {
	if fn == nil {
		r.op.problem("handler %q has no function", id)
		return
	}
	if r.change != nil && (r.change.Old != nil || r.change.New != nil) {
		r.op.problem("handler %q: an event has no old value; use Value instead of Changed", id)
		return
	}
	r.op.declare(&registry.Handler{
		Family: registry.Events, ID: storedID(id, r.change), Where: caller(), Of: r.of, Select: r.selected, Managed: r.managed,
		Criteria: r.criteria, Change: r.change, When: r.when,
		Call: func(ctx context.Context, req *registry.Request) error {
			s, err := newSubject[T](req)
			if err != nil {
				return &registry.UndecodableError{Err: err}
			}
			return classify(fn(ctx, &Event[T]{Subject: s, Type: req.Event, Missed: req.Missed}))
		},
	})
}
