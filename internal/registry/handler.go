// Package registry describes handlers with the types of their objects erased,
// and decides which of them match a cause. It is pure.
package registry

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/kind"
)

// Family is what a handler is about.
type Family int

// The families.
const (
	Changes    Family = iota // changes of objects, with state and attempts
	Events                   // events of the stream, each once
	Background               // daemons and timers beside the object
	Indexing                 // what the object has in an index
	Reviews                  // requests to the API, before they are granted
)

// Handler is one declared function and all that was said about it.
type Handler struct {
	Family   Family
	ID       string // as stored: with the field's or the parent's name in it
	Formerly []string
	Where    string // file:line of the declaration

	Of        kind.Selector
	Select    string                // of labels: what the server is asked for; "" for everything
	Labels    Requirements          // of indexing handlers: those criteria for labels that the API server can check
	Managed   bool                  // its objects must have metadata.managedFields
	Reasons   map[cause.Reason]bool // what it is declared for
	Deleted   bool                  // when resuming: also objects being deleted
	Mandatory bool                  // deletion must wait for it: it asks for the finalizer

	Criteria filter.Criteria
	Change   *filter.Change // a field it is about; nil for whole objects
	AnyMove  bool           // the field must have changed whatever the reason, not only on updates
	When     []func(*Request) bool

	Admission *Admission // of handlers of reviews; nil for others

	Limits Limits
	Call   func(context.Context, *Request) error
}

// Limits pace the attempts of a handler.
type Limits struct {
	Timeout Opt[time.Duration] // since the first attempt, pauses included
	Retries Opt[int]           // calls at the most
	Backoff Opt[time.Duration] // pause after an unclassified error
	OnError Opt[ErrorMode]
}

// Opt is a setting that may be left to its default.
type Opt[T any] struct {
	Set bool
	Is  T
}

// Some is a setting that is made.
func Some[T any](v T) Opt[T] { return Opt[T]{true, v} }

// Or is the setting, or else the default.
func (o Opt[T]) Or(fallback T) T {
	if o.Set {
		return o.Is
	}
	return fallback
}

// ErrorMode says what an error that is neither temporary nor permanent means.
type ErrorMode int

// The modes.
const (
	Retry  ErrorMode = iota // try again after the backoff
	Ignore                  // as if the handler had succeeded
	Fail                    // as if the error were permanent
)

// Overlaps tells whether both may be called for the same thing.
func (h *Handler) Overlaps(other *Handler) bool {
	if h.Family != other.Family {
		return false
	}
	if h.Family == Reviews {
		return h.Admission.Mutating == other.Admission.Mutating
	}
	if h.Family != Changes {
		return true
	}
	for reason := range h.Reasons {
		if other.Reasons[reason] {
			return true
		}
	}
	return false
}
