package handler

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/kind"
)

// Reconcile has the options of a reconcile handler.
type Reconcile struct {
	Owned        []Owned
	Watched      []kind.Selector // kinds of objects that are no children; see [Children.Refer]
	Every        time.Duration   // the longest time between two calls; 0 means no limit
	NoConditions bool            // the framework writes no conditions
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
		if o.Of.Matches(info) {
			owned, anywhere = true, anywhere || o.Anywhere
		}
	}
	return owned, anywhere
}

// Watches reports whether changes of objects of the resource may call the handler,
// although they are no children.
func (r *Reconcile) Watches(info kind.Info) bool {
	return slices.ContainsFunc(r.Watched, func(of kind.Selector) bool { return of.Matches(info) })
}

// Reference names an object whose changes call the handler, although it is no child.
type Reference struct {
	Of              *kind.Selector // the same for all references of a declaration
	Namespace, Name string         // an empty namespace means that of the owner
}

// Wanted is a child that a reconcile handler declared.
type Wanted struct {
	children.Desired
	Info      kind.Info
	Fields    map[string]any // the manifest, without the marks of the operator
	Initial   [][]string     // the paths of fields that are set only at the creation
	DependsOn []*Wanted
	Ready     func(*object.Body) bool // nil means the built-in rules
	Rolling   Rolling
	Problem   error // the child cannot be applied; nil means that it can
}

// Rolling limits the children of a group that are changed and not ready at the same time.
// The zero value is no limit.
type Rolling struct {
	Group string
	Limit int
}

// Content returns the content of a live child. It unpacks it, or reads it from the API
// server.
type Content func() (*object.Body, error)

// Children is the part of a [Request] that only reconcile handlers have.
type Children struct {
	// Find returns the content of a live child, and the verdict of the built-in rules. nil
	// means that the child does not exist.
	Find   func(children.Key) (body Content, builtIn readiness.Verdict)
	Wanted []*Wanted
	// Refer replaces the references of the handler. May be nil.
	Refer func([]Reference)
	// Reserve counts bytes of memory for children that are declared or decoded. Less than zero
	// gives some back. It may wait. The error means that there is not enough memory. May be
	// nil.
	Reserve func(bytes int) error
	// Operator is the name of the operator: the value of the label of its children.
	Operator string
	// Listed returns the children in the inventories of the object: clients of other namespaces
	// cannot have forged them. nil means that the inventories are not known.
	Listed func() []children.Key
	// Again is the delay until the next call after a success. Unset means none.
	Again Opt[time.Duration]

	keys     map[children.Key]bool // of Claim
	mistakes []error               // of Reject
	others   int                   // the mistakes that are not kept
}

// maxMistakes limits the mistakes that are kept. The number of children may come from the
// object.
const maxMistakes = 10

// Claim notes the key of a declared child. It reports whether no other child has it.
func (c *Children) Claim(k children.Key) bool {
	if c.keys[k] {
		return false
	}
	if c.keys == nil {
		c.keys = map[children.Key]bool{}
	}
	c.keys[k] = true
	return true
}

// Reject notes an invalid declaration of a child, such as one without a name. The call fails
// with it.
func (c *Children) Reject(err error) {
	if len(c.mistakes) == maxMistakes {
		c.others++
		return
	}
	c.mistakes = append(c.mistakes, err)
}

// Mistake returns the first mistakes of [Children.Reject], and the number of others. nil means
// that there is none.
func (c *Children) Mistake() error {
	all := c.mistakes
	if c.others > 0 {
		all = append(slices.Clip(all), fmt.Errorf("there are %d more mistakes", c.others))
	}
	return errors.Join(all...)
}

type childrenKey struct{}

// WithChildren returns a context for the call of a reconcile handler. Package serve needs
// more of c than [gopf.Want] offers.
func WithChildren(ctx context.Context, c *Children) context.Context {
	return context.WithValue(ctx, childrenKey{}, c)
}

// ChildrenOf returns the children of [WithChildren]. nil means that there are none.
func ChildrenOf(ctx context.Context) *Children {
	c, _ := ctx.Value(childrenKey{}).(*Children)
	return c
}
