package gopf

import (
	"context"

	admissionv1 "k8s.io/api/admission/v1"
	authenticationv1 "k8s.io/api/authentication/v1"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/handler"
)

// Candidate is the argument of [Resource.When]: an object for which a handler may be
// called, and what happened to it. Members that do not apply to the kind of handler are
// zero.
type Candidate[T Object] struct {
	*Subject[T]

	// Reason is the reason of a change. It is 0 for other handlers than change
	// handlers, and if the object has no change to handle: filters also decide whether
	// an object needs a finalizer.
	Reason Reason
	// Event is the type of the watch event, for event handlers; see [WatchEvent.Type].
	Event string
	// Operation is the operation of an admission request.
	Operation admissionv1.Operation
	// User is the user who sent the admission request.
	User authenticationv1.UserInfo
	// ClientAddress is the host that sent the admission request; see [Review.ClientAddress].
	ClientAddress string
}

func newCandidate[T Object](req *handler.Request) (*Candidate[T], error) {
	s, err := newSubject[T](req)
	if err != nil {
		return nil, err
	}
	c := &Candidate[T]{Subject: s, Event: req.Event}
	if req.Cause != nil {
		c.Reason = reasonOf(req.Cause.Reason)
	}
	if r := req.Review; r != nil {
		c.Operation, c.User, c.ClientAddress = admissionv1.Operation(r.Operation), r.User, r.Peer
	}
	return c, nil
}

// Context returns a context for a filter that takes time. For reviews, it ends when the API
// server no longer waits for the response. For other handlers, it never ends.
func (c *Candidate[T]) Context() context.Context {
	if c.req.Review != nil && c.req.Review.Context != nil {
		return c.req.Review.Context()
	}
	return context.Background()
}

// Old returns the last handled configuration for change handlers, and the current
// object for reviews; see [Change] and [Review]. Otherwise, and on creation, it is
// empty. Each call decodes it again.
func (c *Candidate[T]) Old() T {
	switch {
	case c.req.Cause != nil:
		return decodeOld[T](c.req.Cause.Old, c.req.Body)
	case c.req.Review != nil && c.req.Review.Old != nil:
		return decodeOld[T](c.req.Review.Old.Map(), c.req.Review.Old)
	}
	return emptyObject[T]()
}

// Diff returns the difference between Old and Object. It is not relative to the field
// of the handler. It is empty for other handlers than change handlers and reviews.
func (c *Candidate[T]) Diff() diff.Diff {
	switch {
	case c.req.Cause != nil:
		return c.req.Cause.Diff
	case c.req.Review != nil:
		return c.req.Review.Diff()
	}
	return nil
}

func (c *Candidate[T]) lookupOld(path []string) (any, bool) {
	switch {
	case c.req.Cause != nil:
		return valueAt(c.req.Cause.Old, path)
	case c.req.Review != nil && c.req.Review.Old != nil:
		return c.req.Review.Old.Lookup(path...)
	}
	return nil, false
}
