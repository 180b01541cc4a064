package gopf

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// Object is a pointer to a struct that embeds metav1.ObjectMeta, such as
// *corev1.Pod or a type of your own; or [Unstructured]. No generated code is
// needed.
type Object = metav1.Object

// Unstructured is the object of handlers without a Go type of their own.
type Unstructured = *unstructured.Unstructured

// Resource declares handlers for the objects of one resource. The methods that
// narrow it return a narrowed copy and leave the receiver as it was.
type Resource[T Object] struct {
	op       *Operator
	of       kind.Selector
	selected string
	criteria filter.Criteria
	labels   []metav1.LabelSelectorRequirement // those of the criteria that the cluster can check
	change   *filter.Change
	when     []func(*registry.Request) bool
	managed  bool
}

// For declares handlers for the objects of a resource, decoded into T. The name
// is read by [kind.Parse]: "kopf.dev/v1/kopfexamples", "v1/pods", "pods", ….
func For[T Object](op *Operator, name string) *Resource[T] {
	of, err := kind.Parse(name)
	if err != nil {
		op.problem("%w", err)
	}
	op.types.add(reflect.TypeFor[T](), of)
	return &Resource[T]{op: op, of: of}
}

// ForSelector is [For] with a selector made by hand.
func ForSelector[T Object](op *Operator, of kind.Selector) *Resource[T] {
	if err := of.Err(); err != nil {
		op.problem("%w", err)
	}
	op.types.add(reflect.TypeFor[T](), of)
	return &Resource[T]{op: op, of: of}
}

// WithLabel narrows to objects whose label has a fitting value.
func (r *Resource[T]) WithLabel(key string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	n.criteria.Labels = append(n.criteria.Labels, filter.Key{Name: key, Match: value.match})
	if requirement, ok := value.requirement(key); ok {
		n.labels = append(n.labels, requirement)
	}
	return n
}

// WithAnnotation narrows to objects whose annotation has a fitting value.
func (r *Resource[T]) WithAnnotation(key string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	n.criteria.Annotations = append(n.criteria.Annotations, filter.Key{Name: key, Match: value.match})
	return n
}

// WithField narrows to objects whose field has a fitting value now. The path is
// dotted ("spec.size") or a JSON pointer ("/spec/size").
func (r *Resource[T]) WithField(path string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	n.criteria.Fields = append(n.criteria.Fields, filter.Field{Path: r.path(path), Match: value.match})
	return n
}

// Field makes handlers be about one field: they are called on updates only if
// it has changed, their Diff is relative to it, and its path becomes part of
// their stored ids. Fields that are otherwise no reason for handling, such as
// those of the status, become one. A handle can be about one field at the most.
func (r *Resource[T]) Field(path string) *FieldResource[T] {
	n := r.narrowed()
	if n.change != nil {
		r.op.problem("a handle can be about one field only: %s or %s", fieldpath.Path(n.change.Path), path)
	}
	n.change = &filter.Change{Path: r.path(path)}
	return &FieldResource[T]{*n}
}

// Select makes the server send only the objects whose labels match, in the
// notation of kubectl: "tier=prod,env!=test". It saves traffic and memory, but an
// object that leaves the selection looks deleted. So it excludes deletion
// handlers that hold up deletions, daemons, timers and event handlers, and all
// handlers of the resource must select the same.
func (r *Resource[T]) Select(labels string) *Resource[T] {
	n := r.narrowed()
	if _, err := metalabels.Parse(labels); err != nil {
		r.op.problem("Select(%q): %w", labels, err)
	}
	n.selected = labels
	return n
}

// WithManagedFields lets handlers see metadata.managedFields: which client has set
// which field. By default they are dropped when an object arrives, because they often
// make up half of its size and few handlers need them. If one handle of a resource
// asks for them, all its handlers may see them. They are no part of what counts as a
// change.
func (r *Resource[T]) WithManagedFields() *Resource[T] {
	n := r.narrowed()
	n.managed = true
	return n
}

// When narrows to objects for which fn returns true. It is asked often, so it
// should be quick and must not have effects.
func (r *Resource[T]) When(fn func(*Subject[T]) bool) *Resource[T] {
	n := r.narrowed()
	if fn == nil {
		r.op.problem("When has no function")
		return n
	}
	n.when = append(n.when, func(req *registry.Request) bool {
		s, err := newSubject[T](req)
		if err != nil {
			// Handlers of changes are then reported as impossible rather than
			// skipped in silence, and those of reviews refuse; others have nothing
			// to lose.
			return req.Cause != nil || req.Review != nil
		}
		return fn(s)
	})
	return n
}

// narrowed is a copy, to be narrowed by the matchers.
func (r *Resource[T]) narrowed(by ...Matcher) *Resource[T] {
	for _, m := range by {
		if p := m.problem(); p != "" {
			r.op.problem("%s", p)
		}
	}
	n := *r
	n.criteria.Labels = n.criteria.Labels[:len(n.criteria.Labels):len(n.criteria.Labels)]
	n.labels = n.labels[:len(n.labels):len(n.labels)]
	n.criteria.Annotations = n.criteria.Annotations[:len(n.criteria.Annotations):len(n.criteria.Annotations)]
	n.criteria.Fields = n.criteria.Fields[:len(n.criteria.Fields):len(n.criteria.Fields)]
	n.when = n.when[:len(n.when):len(n.when)]
	return &n
}

func (r *Resource[T]) path(path string) []string {
	p, err := fieldpath.Parse(path)
	if err != nil {
		r.op.problem("%w", err)
	}
	return p
}

// FieldResource is a handle that is about one field; see [Resource.Field].
type FieldResource[T Object] struct{ Resource[T] }

// Value narrows to objects whose field has a fitting value, before or after the
// change.
func (r *FieldResource[T]) Value(m Matcher) *FieldResource[T] {
	return r.with(func(c *filter.Change) { c.Value = m.match })
}

// Changed narrows to changes of the field from a fitting value to a fitting
// value.
func (r *FieldResource[T]) Changed(old, new Matcher) *FieldResource[T] {
	return r.with(func(c *filter.Change) { c.Old, c.New = old.match, new.match })
}

func (r *FieldResource[T]) with(set func(*filter.Change)) *FieldResource[T] {
	n := &FieldResource[T]{*r.narrowed()}
	change := *n.change
	set(&change)
	if change.Value != nil && (change.Old != nil || change.New != nil) {
		r.op.problem("Value and Changed exclude each other")
	}
	n.change = &change
	return n
}

// ChangeFunc handles a change of an object.
//
// A nil error means that it is done with this change. [RetryAfter] and [Wait]
// ask to be called again, [Permanent] not to be; after any other error it is
// called again after the backoff. A panic is such an error.
//
// The context is cancelled when the handler's timeout is over or the operator
// has to stop; see [ErrStopping].
type ChangeFunc[T Object] func(context.Context, *Change[T]) error
