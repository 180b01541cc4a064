package gopf

import (
	"context"
	"reflect"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/kind"
)

// Object is a Kubernetes object: a pointer to a struct that embeds metav1.ObjectMeta,
// such as *corev1.Pod or your own type, or [Unstructured]. No generated code is needed.
type Object = metav1.Object

// Unstructured is an object without a Go type: its fields are in maps.
type Unstructured = *unstructured.Unstructured

// Resource is a handle for declaring handlers of one resource. T is the Go type of its
// objects. Get one from [For] or [Operator.Resource].
//
// Filter methods such as [Resource.WithLabel] return a restricted copy and leave the
// receiver unchanged. All filters of a handle must match. Handlers are declared by On…,
// Daemon, Timer, Validate and Mutate, before the operator runs. Mistakes do not panic:
// [Operator.Err] and [Operator.Run] report all of them with file and line.
//
//	prod := dbs.WithLabel("tier", gopf.Is("prod"))
//	prod.OnCreate("create", create)
//	prod.WithField("spec.backup", gopf.Is(true)).Timer("backup", time.Hour, backup)
type Resource[T Object] struct {
	op       *Operator
	of       kind.Selector
	selected string
	handOver bool
	criteria handler.Criteria
	labels   []metav1.LabelSelectorRequirement // the label criteria that the API server can check
	field    *handler.Change                   // the field of the handle; nil means none
	when     []func(*handler.Request) bool
	whenAt   []string
	managed  bool
}

// For returns a handle for the objects of a resource, decoded into T. The name is
// parsed by [kind.Parse]; "kopf.dev/v1/kopfexamples", "v1/pods" and "pods" are valid.
// Prefer the full form: a short name becomes ambiguous when another CRD uses it.
//
//	type Database struct {
//		metav1.TypeMeta   `json:",inline"`
//		metav1.ObjectMeta `json:"metadata"`
//		Spec              struct {
//			Size int `json:"size"`
//		} `json:"spec"`
//	}
//
//	dbs := gopf.For[*Database](op, "example.com/v1/databases")
//
// An object that cannot be decoded into T is logged, and its handlers are not called
// until it can; no attempt is counted. Fields that T lacks are preserved by all writes
// of the operator. A resource that the cluster does not have is reported in the log and
// by the health endpoint, and is served as soon as it exists. An invalid name is a
// declaration error.
func For[T Object](op *Operator, name string) *Resource[T] {
	of, err := kind.Parse(name)
	if err != nil {
		op.problem("%w", err)
	}
	op.types.Add(reflect.TypeFor[T](), of)
	return &Resource[T]{op: op, of: of}
}

// ForSelector is [For] with a selector instead of a name, for example to serve all
// resources of a group or category.
func ForSelector[T Object](op *Operator, of kind.Selector) *Resource[T] {
	if err := of.Err(); err != nil {
		op.problem("%w", err)
	}
	op.types.Add(reflect.TypeFor[T](), of)
	return &Resource[T]{op: op, of: of}
}

// WithLabel restricts the handle to objects whose label matches. In indices and
// reviews, the API server itself evaluates [Is], [Present] and [Absent].
func (r *Resource[T]) WithLabel(key string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	n.criteria.Labels = append(n.criteria.Labels, handler.Key{Name: key, Match: value.match, Want: value.text})
	if requirement, ok := value.requirement(key); ok {
		n.labels = append(n.labels, requirement)
	}
	return n
}

// WithAnnotation restricts the handle to objects whose annotation matches.
func (r *Resource[T]) WithAnnotation(key string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	n.criteria.Annotations = append(n.criteria.Annotations, handler.Key{Name: key, Match: value.match, Want: value.text})
	return n
}

// WithField restricts the handle to objects whose field matches now. The path is dotted
// ("spec.size") or a JSON pointer ("/spec/size"), and may point anywhere in the object.
// To react to changes of a field, use [Resource.Field].
//
// A path that misspells a field of T is a declaration error: "spec.hosst: *Database has
// no such field; did you mean spec.host?". T may lack fields on purpose, so any other
// path is accepted. When the operator runs, it logs a warning for paths that are not in
// the schema of the cluster.
func (r *Resource[T]) WithField(path string, value Matcher) *Resource[T] {
	n := r.narrowed(value)
	keys, doubt := r.path(path)
	n.criteria.Fields = append(n.criteria.Fields, handler.Field{Path: keys, Match: value.match, Want: value.text, Doubt: doubt})
	return n
}

// Field restricts handlers to one field. Update handlers are called only if it has
// changed, [Change.Diff] is relative to it, and its path becomes part of their stored
// ids. A field in the status or the metadata, where changes are otherwise ignored,
// becomes part of the handled configuration. A handle can have at most one field. The
// path is checked as that of [Resource.WithField]. A field that changes with every write,
// such as metadata as a whole, is a declaration error.
func (r *Resource[T]) Field(path string) *FieldResource[T] {
	n := r.narrowed()
	if n.field != nil {
		r.op.problem("a handle can have only one field, not both %s and %s", jsonvalue.Path(n.field.Path), path)
	}
	keys, doubt := r.path(path)
	if changesWithEveryWrite(keys) {
		r.op.problem("the field %s changes with every write, also of this operator, so its handlers would be called forever; use a field like metadata.labels", path)
	}
	n.field = &handler.Change{Path: keys, Doubt: doubt}
	return &FieldResource[T]{*n}
}

// Select restricts the handle by a label selector that the API server evaluates, in the
// syntax of kubectl: "tier=prod,env!=test". This saves traffic and memory for large
// resources.
//
// All handlers of a resource must have the same selector. The API server reports an
// object that leaves the selection as deleted, so the operator reads the object once to
// tell both cases apart. An object that left is released like one that stopped matching a
// filter: daemons and timers end with [ErrUnmatched], and the finalizer is removed. Event
// handlers are not called for it.
//
// An object that leaves the selection while the operator is not running keeps its
// finalizer, because the operator does not see the object then.
func (r *Resource[T]) Select(labels string) *Resource[T] {
	n := r.narrowed()
	selector, err := metalabels.Parse(labels)
	if err != nil {
		r.op.problem("Select(%q): %w", labels, err)
	}
	n.selected, n.criteria.Selector = labels, selector
	return n
}

// HandOver keeps the finalizer on objects that leave the selection of [Resource.Select],
// for the next owner. Use it if several operators of the same identity share the objects of
// a resource by a label, each with its own selection: the next owner handles the deletion,
// and an unfinished change, in place of the former one.
//
//	shard := dbs.Select("shard=" + os.Getenv("SHARD")).HandOver()
//
// An object that is no longer selected by any replica cannot be deleted until it is
// released: by a label that some replica selects, or by removing its finalizer. All
// handlers of a resource must agree.
func (r *Resource[T]) HandOver() *Resource[T] {
	n := r.narrowed()
	if n.selected == "" {
		r.op.problem("HandOver is for handles with Select; call Select first")
	}
	n.handOver = true
	return n
}

// WithManagedFields keeps metadata.managedFields, which lists the fields that each
// client has set. By default they are dropped when an object arrives, because they
// often make up half of its size. If one handle of a resource keeps them, all handlers
// of the resource may see them. They never count as a change.
func (r *Resource[T]) WithManagedFields() *Resource[T] {
	n := r.narrowed()
	n.managed = true
	return n
}

// When restricts the handle to objects and changes for which fn returns true. fn is
// called for every event and every handler of the handle, so it must be quick and must
// not have side effects. Its patch is discarded.
//
//	dbs.When(func(c *gopf.Candidate[*Database]) bool {
//		return c.Reason != gopf.Update || c.Old().Spec.Size < c.Object.Spec.Size
//	}).On(gopf.Create|gopf.Update, "grow", grow)
//
// If the object cannot be decoded into T, fn is not called: change handlers report the
// error, reviews are denied, and other handlers skip the object.
func (r *Resource[T]) When(fn func(*Candidate[T]) bool) *Resource[T] {
	n := r.narrowed()
	if fn == nil {
		r.op.problem("When has no function")
		return n
	}
	n.whenAt = append(n.whenAt, placeOf(fn))
	n.when = append(n.when, func(req *handler.Request) bool {
		c, err := newCandidate[T](req)
		if err != nil {
			// Match: change handlers then report the error instead of skipping
			// the object silently, and reviews are denied.
			return req.Cause != nil || req.Review != nil
		}
		return fn(c)
	})
	return n
}

// narrowed returns a copy that shares no slice capacity with r. It reports invalid
// matchers.
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
	n.whenAt = n.whenAt[:len(n.whenAt):len(n.whenAt)]
	return &n
}

// FieldResource is a [Resource] handle for one field; see [Resource.Field].
type FieldResource[T Object] struct{ Resource[T] }

// Value restricts handlers to objects whose field matches before or after the change.
// So Value(Absent) matches every creation. It cannot be combined with
// [FieldResource.Changed].
func (r *FieldResource[T]) Value(m Matcher) *FieldResource[T] {
	return r.with(func(c *handler.Change) { c.Value, c.Want.Value = m.match, m.text })
}

// Changed restricts handlers to changes of the field from a value that matches old to a
// value that matches new. Use [Any] for a side that does not matter.
func (r *FieldResource[T]) Changed(old, new Matcher) *FieldResource[T] {
	return r.with(func(c *handler.Change) {
		c.Old, c.New, c.Want.Old, c.Want.New = old.match, new.match, old.text, new.text
	})
}

func (r *FieldResource[T]) with(set func(*handler.Change)) *FieldResource[T] {
	n := &FieldResource[T]{*r.narrowed()}
	change := *n.field
	set(&change)
	if change.Value != nil && (change.Old != nil || change.New != nil) {
		r.op.problem("Value and Changed cannot be combined; use only one of them")
	}
	n.field = &change
	return n
}

// ChangeFunc handles a change of an object. The returned error decides about further
// calls:
//
//   - nil: the handler is done with this change.
//   - [RetryAfter] and [Wait]: it is called again after the given delay.
//   - [Permanent]: it has failed and is not called again for this change.
//   - Any other error, or a panic: it is called again after the [Backoff], or as [ErrorsPermanent] or [ErrorsIgnored] say.
//
// Change handlers of one object never run concurrently; those of different objects do.
// The context is canceled when the handler's [Timeout] is over, or when the operator
// stops and [QueueingSettings.ExitTimeout] is over; see [ErrTimeout] and [ErrStopping].
// An error returned because of a shutdown is not an attempt: the handler is called
// again after the next start.
type ChangeFunc[T Object] func(context.Context, *Change[T]) error
