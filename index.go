package gopf

import (
	"context"
	"iter"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
)

// Keep is returned by an index function as its error to leave the values of the object
// unchanged. It is not a failure and not logged as one.
var Keep = index.Keep

// Index declares an in-memory index of the objects of a resource. Handlers of any
// object can look it up without a request to the API server.
//
// fn returns the values of one object by key, which replace its earlier ones. nil or an
// empty map removes the object. fn is called for every event of the object, before any
// handler of the event, so it must be quick and must not send requests. Deleted objects
// leave the index automatically.
//
//	pods := gopf.Index(gopf.For[*corev1.Pod](op, "v1/pods"), "by-node",
//		func(ctx context.Context, s *gopf.Subject[*corev1.Pod]) (map[string]string, error) {
//			return map[string]string{s.Object.Spec.NodeName: s.Object.Name}, nil
//		})
//
// No handler of the operator is called before all indices contain all existing objects, except
// those in namespaces that match a pattern and that the operator may not list. Errors of fn
// are logged and leave the values unchanged; see [ErrorsPermanent] and [ErrorsTemporary]. After
// [RetryAfter], the object leaves the index until its first event after the delay;
// after [Permanent], for the rest of the process.
//
// If a resource has only index functions with the same label filters, the API server
// sends only objects with these labels. [Resource.Field] is not supported; use
// [Resource.WithField].
func Index[T Object, K comparable, V any](r *Resource[T], id string, fn func(context.Context, *Subject[T]) (map[K]V, error), opts ...RetryOption) *IndexOf[K, V] {
	kept := index.New[K, V]()
	switch {
	case fn == nil:
		r.op.problem("index %q has no function", id)
	case r.field != nil:
		r.op.problem("index %q: Field is not supported for indices; use WithField instead", id)
	default:
		h := &handler.Handler{
			Family: handler.Indexing, ID: id, Where: caller(), Of: r.of, Type: typeOf[T](), Select: r.selected, HandOver: r.handOver, Managed: r.managed,
			Criteria: r.criteria, Labels: r.labels, When: r.when, WhenAt: r.whenAt, Limits: limits(opts),
			Call: func(ctx context.Context, req *handler.Request) error {
				s, err := newSubject[T](req)
				if err != nil {
					return &handler.UndecodableError{Err: err}
				}
				return r.op.hooks.call(ctx, callOf(req, "index", &s.Log), func(ctx context.Context) error {
					values, err := fn(ctx, s)
					req.Result = values
					return err
				})
			},
		}
		r.op.indices[h] = kept
		r.op.declare(h)
	}
	return &IndexOf[K, V]{kept}
}

// Collect is an [Index] without keys: fn returns the value of one object. ok false
// removes the object.
func Collect[T Object, V any](r *Resource[T], id string, fn func(context.Context, *Subject[T]) (v V, ok bool, err error), opts ...RetryOption) *IndexOf[struct{}, V] {
	return Index(r, id, func(ctx context.Context, s *Subject[T]) (map[struct{}]V, error) {
		v, ok, err := fn(ctx, s)
		if err != nil || !ok {
			return nil, err
		}
		return map[struct{}]V{{}: v}, nil
	}, opts...)
}

// Mirror is an [Index] of whole objects by name. It keeps every matching object in
// memory; restrict it by filters where there are many.
func Mirror[T Object](r *Resource[T]) *IndexOf[types.NamespacedName, T] {
	return Index(r, storedName("mirror."+r.of.String()), func(_ context.Context, s *Subject[T]) (map[types.NamespacedName]T, error) {
		return map[types.NamespacedName]T{{Namespace: s.Object.GetNamespace(), Name: s.Object.GetName()}: s.Object}, nil
	})
}

// IndexOf is an index; see [Index]. It follows the objects as they change. All methods
// are safe for concurrent use, inside and outside of handlers, even within loops over
// the index. Values are shared: do not modify them.
type IndexOf[K comparable, V any] struct{ kept *index.Index[K, V] }

// Get returns the values under the key, in no particular order. The index may change
// during the loop.
func (i *IndexOf[K, V]) Get(key K) iter.Seq[V] { return i.kept.Get(key) }

// One returns any one of the values under the key. ok is false if there is none.
func (i *IndexOf[K, V]) One(key K) (V, bool) { return i.kept.One(key) }

// Has reports whether there are values under the key.
func (i *IndexOf[K, V]) Has(key K) bool { return i.kept.Has(key) }

// Count returns the number of values under the key.
func (i *IndexOf[K, V]) Count(key K) int { return i.kept.Count(key) }

// Len returns the number of keys.
func (i *IndexOf[K, V]) Len() int { return i.kept.Len() }

// Keys returns all keys, in no particular order.
func (i *IndexOf[K, V]) Keys() iter.Seq[K] { return i.kept.Keys() }

// All returns all values with their keys, in no particular order. A key is repeated for
// each of its values.
func (i *IndexOf[K, V]) All() iter.Seq2[K, V] { return i.kept.All() }
