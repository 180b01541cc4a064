// Package handler describes declared handlers without their Go types, and decides
// which of them match an object and a cause. It is pure.
package handler

import (
	"context"
	"reflect"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/kind"
)

// Family is the type of a handler: when it is called, and how its outcome is recorded.
type Family int

// The families.
const (
	Changes    Family = iota // called for changes of objects, with recorded progress and retries
	Events                   // called for watch events, once each
	Background               // daemons and timers, which run as long as the object exists
	Indexing                 // called to compute the index entries of an object
	Reviews                  // called for admission requests
	Reconciles               // called to declare the children of an object
)

// Handler is one declared function with all of its options.
type Handler struct {
	Family   Family
	ID       string   // the id in records; contains the field's or the parent's name
	Formerly []string // former ids, whose records are taken over
	Where    string   // file:line of the declaration

	Of        kind.Selector
	Type      reflect.Type          // that objects are decoded into for it; nil means maps
	Select    string                // label selector for lists and watches; "" means all objects
	HandOver  bool                  // an object that leaves the selection keeps its finalizer
	Labels    Requirements          // indexing handlers: the label criteria that the API server can check
	Managed   bool                  // its objects must have metadata.managedFields
	Reasons   map[cause.Reason]bool // the reasons that it is declared for
	Deleted   bool                  // resuming handlers: include objects that are being deleted
	Mandatory bool                  // deletions must wait for it, so it requires the finalizer

	Criteria Criteria
	Change   *Change // the field that it handles; nil means the whole object
	AnyMove  bool    // the field must have changed for every reason, not only for updates
	When     []func(*Request) bool
	WhenAt   []string // the declarations of the When functions, as file:line; may be shorter

	Admission *Admission // the options of a review handler; nil means another family
	Reconcile *Reconcile // the options of a reconcile handler; nil means another family

	DependsOn []string // sub-handlers: the ids of others that must succeed first
	Last      bool     // sub-handlers: it waits for the end of all others, whatever their outcomes

	Limits Limits
	Call   func(context.Context, *Request) error
}

// Limits has the limits and the retry policy of a handler.
type Limits struct {
	Timeout Opt[time.Duration] // from the start of the first attempt, including delays; unset means no limit
	Retries Opt[int]           // the maximum number of calls; unset means no limit
	Backoff Opt[time.Duration] // the delay after an unclassified error
	OnError Opt[ErrorMode]
}

// Opt is an optional setting. The zero value means the default.
type Opt[T any] struct {
	Set bool
	Is  T
}

// Some returns a setting with the value v.
func Some[T any](v T) Opt[T] { return Opt[T]{true, v} }

// Or returns the value of the setting, or fallback if it is not set.
func (o Opt[T]) Or(fallback T) T {
	if o.Set {
		return o.Is
	}
	return fallback
}

// ErrorMode is the effect of an error that is neither temporary nor permanent.
type ErrorMode int

// The modes.
const (
	Retry  ErrorMode = iota // retry after the backoff
	Ignore                  // treat the call as a success
	Fail                    // treat the error as permanent
)

// Overlaps reports whether both handlers may be called for the same cause, event or
// review. They must then have different ids.
func (h *Handler) Overlaps(other *Handler) bool {
	if h.Family != other.Family {
		// Both keep their records under their ids.
		recorded := func(f Family) bool { return f == Changes || f == Reconciles }
		return recorded(h.Family) && recorded(other.Family)
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
