package gopf

import (
	"reflect"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// ReconcileOption is an option of [Resource.Reconcile].
type ReconcileOption interface{ reconcile(*reconcileSpec) }

type reconcileSpec struct {
	handler.Reconcile
	op     *Operator
	id     string
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
