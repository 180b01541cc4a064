package gopf

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/hierarchy"
	"gopf.dev/gopf/internal/apiclient"
)

// Adopt makes the object the owner of children that are about to be created. It adds an
// owner reference, so Kubernetes deletes the children with the object. Where they are
// missing, it also sets a name that starts with the object's name, the object's
// namespace and its labels. Children are structs, [Unstructured] or maps, or slices of
// these; see package hierarchy for the options.
//
//	if err := c.Adopt(pvc, hierarchy.Strict()); err != nil {
//		return err
//	}
//	return c.API.Create(ctx, pvc)
//
// By default the name has a random suffix, so each attempt creates another child;
// [hierarchy.Strict] uses the name of the object. A namespaced object cannot own
// cluster-scoped objects, nor objects in other namespaces: Adopt then returns a
// [hierarchy.OutsideError] and leaves the child unchanged.
func (s *Subject[T]) Adopt(children any, opts ...hierarchy.Option) error {
	if s.req.Body.Namespace != "" {
		if err := s.refuseClusterScoped(children); err != nil {
			return err
		}
	}
	return hierarchy.Adopt(children, s.owner(), opts...)
}

// Disown removes the owner references that [Subject.Adopt] added to the children. It
// changes them in memory only.
func (s *Subject[T]) Disown(children any) error {
	return hierarchy.RemoveOwnerReference(children, s.owner())
}

// OwnerReference returns an owner reference to the object.
func (s *Subject[T]) OwnerReference(opts ...hierarchy.Option) metav1.OwnerReference {
	ref, _ := hierarchy.OwnerReference(s.owner(), opts...) // it fails only for values that are no objects
	return ref
}

// owner returns the object as an owner. It uses the received object, because T may lack
// fields and the handler may have modified Object.
func (s *Subject[T]) owner() *unstructured.Unstructured {
	b := s.req.Body
	owner := &unstructured.Unstructured{}
	owner.SetAPIVersion(s.Resource.APIVersion())
	owner.SetKind(s.Resource.Kind)
	owner.SetNamespace(b.Namespace)
	owner.SetName(b.Name)
	owner.SetUID(types.UID(b.UID))
	labels := map[string]string{}
	for key, value := range b.Labels() {
		if text, ok := value.(string); ok {
			labels[key] = text
		}
	}
	owner.SetLabels(labels)
	return owner
}

// refuseClusterScoped returns an error if a child is known to be cluster-scoped. It
// uses only cached discovery results; unknown kinds are allowed.
func (s *Subject[T]) refuseClusterScoped(children any) error {
	c, ok := s.API.(*apiclient.Client)
	if !ok {
		return nil
	}
	all, err := hierarchy.Objects(children)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(all, c.ClusterScoped) {
		return &hierarchy.OutsideError{Owner: s.Resource.Kind + " " + s.req.Body.Name, Namespace: s.req.Body.Namespace}
	}
	return nil
}
