package gopf

import (
	"reflect"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// ReconcileOption is an option of [Resource.Reconcile].
type ReconcileOption interface{ reconcile(*reconcileSpec) }

type reconcileSpec struct {
	handler.Reconcile
	op     *Operator
	id     string
	of     reflect.Type // of the objects
	names  []func(any) []handler.Reference
	limits handler.Limits
	spans  []span
}

type reconcileOption func(*reconcileSpec)

func (o reconcileOption) reconcile(s *reconcileSpec) { o(s) }

func (o retryOption) reconcile(s *reconcileSpec) { o(&s.limits) }

// OwnsOption is an option of [Owns].
type OwnsOption func(*ownsSpec)

type ownsSpec struct {
	name     string
	anywhere bool
}

// Owns declares a kind of children of a reconcile handler. C is their Go type. It is a type
// of k8s.io/api, a type that the operator knows from [For] or [RegisterType], or
// [Unstructured] with [OfResource].
//
//	gopf.Owns[*appsv1.Deployment]()
//
// The operator watches the children of this kind. The API server selects them by the
// label gopf.dev/children, so other objects of the kind are not sent to the operator. The
// operator needs the permissions get, list, watch, create, patch and delete for the kind.
// If the cluster does not have the kind yet, only the children of this kind wait for it.
func Owns[C Object](opts ...OwnsOption) ReconcileOption {
	var spec ownsSpec
	for _, o := range opts {
		o(&spec)
	}
	t := reflect.TypeFor[C]()
	return reconcileOption(func(s *reconcileSpec) {
		of, ok := s.op.types.Selector(t)
		if spec.name != "" {
			var err error
			if of, err = kind.Parse(spec.name); err != nil {
				s.op.problem("%w", err)
				return
			}
			ok = true
			s.op.types.Add(t, of)
		}
		if !ok {
			s.op.problem("handler %q: the resource of %s is not known; use gopf.Owns[%s](gopf.OfResource(\"GROUP/VERSION/PLURAL\"))", s.id, t, t)
			return
		}
		s.Owned = append(s.Owned, handler.Owned{Of: of, Anywhere: spec.anywhere})
	})
}

// Watches calls a reconcile handler when one of the objects that names returns has been
// created, changed or deleted. They are no children: the operator does not change them.
// names returns them for an object that is handled. A name without a namespace is in the
// namespace of the object. C is declared as for [Owns].
//
//	gopf.Watches[*corev1.Secret](func(db *Database) []types.NamespacedName {
//		return []types.NamespacedName{{Name: db.Spec.SecretName}}
//	})
//
// names is called before each call of the handler. It must not block. With more than 2,000
// names, the handler is not called, and fails permanently. The operator
// watches all objects of the kind in the namespaces that it serves, and keeps only their
// names. It needs the permissions get, list and watch for the kind.
func Watches[C, T Object](names func(T) []types.NamespacedName) ReconcileOption {
	c, t := reflect.TypeFor[C](), reflect.TypeFor[T]()
	return reconcileOption(func(s *reconcileSpec) {
		of, ok := s.op.types.Selector(c)
		switch {
		case names == nil:
			s.op.problem("handler %q: Watches[%s] has no function", s.id, c)
			return
		case t != s.of:
			s.op.problem("handler %q: the function of Watches[%s] takes %s, but the handler is for %s", s.id, c, t, s.of)
			return
		case !ok:
			s.op.problem("handler %q: the resource of %s is not known; use gopf.RegisterType[%s](op, \"GROUP/VERSION/PLURAL\")", s.id, c, c)
			return
		}
		s.Watched = append(s.Watched, of)
		s.names = append(s.names, func(obj any) (all []handler.Reference) {
			for _, n := range names(obj.(T)) {
				all = append(all, handler.Reference{Of: &of, Namespace: n.Namespace, Name: n.Name})
			}
			return all
		})
	})
}

// refer returns the objects that an object refers to.
func (s *reconcileSpec) refer(obj any) (all []handler.Reference) {
	for _, names := range s.names {
		all = append(all, names(obj)...)
	}
	return all
}

// OfResource names the resource of the children, as in [For]. It is required for
// [Unstructured] and for types that are not declared elsewhere.
func OfResource(name string) OwnsOption { return func(s *ownsSpec) { s.name = name } }

// InOtherNamespaces allows children in other namespaces than that of the object. Their
// watch covers the whole cluster.
//
// Such children cannot have an owner reference, nor can cluster-scoped children of a
// namespaced object. They have the annotation gopf.dev/owner instead. The object gets a
// finalizer, and the operator deletes these children before the object.
func InOtherNamespaces() OwnsOption { return func(s *ownsSpec) { s.anywhere = true } }

// Every calls a reconcile handler at least once per interval, for example to check state
// outside of the cluster. Default: 0, which means no such calls.
func Every(d time.Duration) ReconcileOption {
	return reconcileOption(func(s *reconcileSpec) { s.Every, s.spans = d, append(s.spans, span{"Every", d}) })
}

// NoConditions keeps the operator from writing status conditions for a reconcile handler.
// Conditions that the handler sets itself are still written.
func NoConditions() ReconcileOption {
	return reconcileOption(func(s *reconcileSpec) { s.NoConditions = true })
}
