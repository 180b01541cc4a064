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

// OnEvent calls fn for every event of the stream, the operator's own changes
// included: once, in their order, with nothing recorded and no second attempt.
// Errors are logged and forgotten.
func (r *Resource[T]) OnEvent(id string, fn EventFunc[T]) {
	if fn == nil {
		r.op.problem("handler %q has no function", id)
		return
	}
	if r.change != nil {
		r.op.problem("handler %q: events are about whole objects; use WithField instead of Field", id)
		return
	}
	r.op.declare(&registry.Handler{
		Family: registry.Events, ID: id, Where: caller(), Of: r.of, Select: r.selected,
		Criteria: r.criteria, When: r.when,
		Call: func(ctx context.Context, req *registry.Request) error {
			s, err := newSubject[T](req)
			if err != nil {
				return &registry.UndecodableError{Err: err}
			}
			return classify(fn(ctx, &Event[T]{Subject: s, Type: req.Event, Missed: req.Missed}))
		},
	})
}
