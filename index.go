package gopf

import (
	"context"
	"iter"

	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/registry"
)

// Keep leaves what an object has in an index as it is, when an index function
// returns it as its error.
var Keep = index.Keep

// IndexOption tunes an index function.
type IndexOption interface{ index(*indexSpec) }

type indexSpec struct{ limits registry.Limits }

// Index keeps an index of the objects of a resource in memory. fn returns what
// one object has in it: a value for each key; nothing takes the object out. It is
// called for every event of the object.
//
// If a resource has only index functions, and all of them have the same label filters,
// the API server sends only objects with these labels.
//
// The index is filled with all that exists before the first handler of the
// operator is called. By default, errors of fn are logged and leave what was
// there; temporary and permanent ones take the object out.
func Index[T Object, K comparable, V any](r *Resource[T], id string, fn func(context.Context, *Subject[T]) (map[K]V, error), opts ...IndexOption) *IndexOf[K, V] {
	var spec indexSpec
	for _, o := range opts {
		o.index(&spec)
	}
	kept := index.New[K, V]()
	switch {
	case fn == nil:
		r.op.problem("index %q has no function", id)
	case r.change != nil:
		r.op.problem("index %q: indices are about whole objects; use WithField instead of Field", id)
	default:
		h := &registry.Handler{
			Family: registry.Indexing, ID: id, Where: caller(), Of: r.of, Select: r.selected, Managed: r.managed,
			Criteria: r.criteria, Labels: r.labels, When: r.when, Limits: spec.limits,
			Call: func(ctx context.Context, req *registry.Request) error {
				s, err := newSubject[T](req)
				if err != nil {
					return &registry.UndecodableError{Err: err}
				}
				values, err := fn(ctx, s)
				req.Result = values
				return classify(err)
			},
		}
		r.op.indices[h] = kept
		r.op.declare(h)
	}
	return &IndexOf[K, V]{kept}
}

// Collect is an [Index] without keys: fn returns the value of one object, if it
// has one.
func Collect[T Object, V any](r *Resource[T], id string, fn func(context.Context, *Subject[T]) (v V, ok bool, err error), opts ...IndexOption) *IndexOf[struct{}, V] {
	return Index(r, id, func(ctx context.Context, s *Subject[T]) (map[struct{}]V, error) {
		v, ok, err := fn(ctx, s)
		if err != nil || !ok {
			return nil, err
		}
		return map[struct{}]V{{}: v}, nil
	}, opts...)
}

// Name tells an object of one resource from the others.
type Name struct{ Namespace, Name string }

// Mirror is an index of whole objects by their names. Every object is kept in
// memory: think of how many there are.
func Mirror[T Object](r *Resource[T]) *IndexOf[Name, T] {
	return Index(r, storedName("mirror."+r.of.String()), func(_ context.Context, s *Subject[T]) (map[Name]T, error) {
		return map[Name]T{{s.Object.GetNamespace(), s.Object.GetName()}: s.Object}, nil
	})
}

// IndexOf is what is in an index now. It changes as objects do, and may be used
// from anywhere at any time. Values are shared: do not change them.
type IndexOf[K comparable, V any] struct{ kept *index.Index[K, V] }

// Get goes through the values of a key, in no order. The loop may go on while
// others change the index.
func (i *IndexOf[K, V]) Get(key K) iter.Seq[V] { return i.kept.Get(key) }

// One is any of the values of a key.
func (i *IndexOf[K, V]) One(key K) (V, bool) { return i.kept.One(key) }

// Has tells whether there is any value for the key.
func (i *IndexOf[K, V]) Has(key K) bool { return i.kept.Has(key) }

// Count is the number of values of a key.
func (i *IndexOf[K, V]) Count(key K) int { return i.kept.Count(key) }

// Len is the number of keys.
func (i *IndexOf[K, V]) Len() int { return i.kept.Len() }

// Keys goes through the keys, in no order.
func (i *IndexOf[K, V]) Keys() iter.Seq[K] { return i.kept.Keys() }

// All goes through all keys and values, in no order; a key comes with each of
// its values.
func (i *IndexOf[K, V]) All() iter.Seq2[K, V] { return i.kept.All() }
