package gopf

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/hierarchy"
)

// Adopt makes children belong to the object, before they are created: they are
// deleted with it, and get a name that begins with its name, its namespace and
// its labels where they have none. Children are structs, [Unstructured] or
// maps, or slices of these; see package hierarchy for the options:
//
//	if err := c.Adopt(pvc); err != nil {
//		return err
//	}
//	if err := c.API.Create(ctx, pvc); err != nil {
//		return err
//	}
//
// A namespaced object cannot own cluster-scoped objects, nor objects in other
// namespaces: then it is a [hierarchy.OutsideError], and the child is as before.
func (s *Subject[T]) Adopt(children any, opts ...hierarchy.Option) error {
	if s.req.Body.Namespace != "" {
		if err := s.refuseClusterScoped(children); err != nil {
			return err
		}
	}
	return hierarchy.Adopt(children, s.owner(), opts...)
}

// Disown undoes what [Subject.Adopt] did to the owner references of children.
func (s *Subject[T]) Disown(children any) error {
	return hierarchy.RemoveOwnerReference(children, s.owner())
}

// OwnerReference is the reference that adopted children have to the object.
func (s *Subject[T]) OwnerReference(opts ...hierarchy.Option) metav1.OwnerReference {
	ref, _ := hierarchy.OwnerReference(s.owner(), opts...) // it fails only for what is no object
	return ref
}

// owner is the object as children know it, whatever T has of it and whatever the
// handler has done to Object.
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

// refuseClusterScoped looks up children whose kind is known already: only the
// cluster knows which kinds are in namespaces.
func (s *Subject[T]) refuseClusterScoped(children any) error {
	c, ok := s.API.(*client)
	if !ok {
		return nil
	}
	all, err := hierarchy.Objects(children)
	if err != nil {
		return err
	}
	known := c.offline()
	for _, child := range all {
		if info, err := known.resource(context.Background(), child, &callSpec{}); err == nil && !info.Namespaced {
			return &hierarchy.OutsideError{Owner: s.Resource.Kind + " " + s.req.Body.Name, Namespace: s.req.Body.Namespace}
		}
	}
	return nil
}
