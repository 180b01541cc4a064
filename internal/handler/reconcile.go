package handler

import (
	"time"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Reconcile has the options of a reconcile handler.
type Reconcile struct {
	Owned        []Owned
	Every        time.Duration // the longest time between two calls; 0 means no limit
	NoConditions bool          // the framework writes no conditions
}

// Owned is a kind of children.
type Owned struct {
	Of       kind.Selector
	Anywhere bool // children may be in other namespaces than their owner
}

// Owns reports whether the handler may declare children of the resource. anywhere reports
// whether they may be in other namespaces than their owner.
func (r *Reconcile) Owns(info kind.Info) (owned, anywhere bool) {
	for _, o := range r.Owned {
		if len(o.Of.Select([]kind.Info{info})) > 0 {
			owned, anywhere = true, anywhere || o.Anywhere
		}
	}
	return owned, anywhere
}

// Wanted is a child that a reconcile handler declared.
type Wanted struct {
	children.Desired
	Info      kind.Info
	Fields    map[string]any // the manifest, without the marks of the operator
	Initial   [][]string     // the paths of fields that are set only at the creation
	DependsOn []*Wanted
	Ready     func(*object.Body) bool // nil means the built-in rules
	Problem   error                   // the child cannot be applied; nil means that it can
}

// Children is the part of a [Request] that only reconcile handlers have.
type Children struct {
	// Find returns a live child. nil means that it does not exist.
	Find   func(children.Key) *object.Body
	Wanted []*Wanted
	// Again is the delay until the next call after a success. Unset means none.
	Again Opt[time.Duration]
	// Mistake is an invalid declaration of a child, such as one without a name. The call
	// fails with it. May be nil.
	Mistake error
}
