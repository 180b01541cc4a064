package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
)

// Methods of update strategies.
const (
	OnDelete        = "OnDelete"
	Recreate        = "Recreate"
	InPlace         = "InPlace"
	RollingRecreate = "RollingRecreate"
	RollingInPlace  = "RollingInPlace"
)

// decoratorAnnotation is the annotation of attachments with the name of their controller.
const decoratorAnnotation = "metacontroller.k8s.io/decorator-controller"

// child is a declared resource of children.
type child struct {
	resource
	strategy UpdateStrategy
}

func (c child) rolling() bool {
	return c.strategy.Method == RollingRecreate || c.strategy.Method == RollingInPlace
}

// Action is the change of an observed child.
type Action int

// The actions of [Update].
const (
	Nothing Action = iota
	Delete         // and create again after the deletion
	Put            // the merged form
)

// Update decides how an observed child gets its desired form. merged is the form to write.
func Update(method string, observed, desired *unstructured.Unstructured) (action Action, merged *unstructured.Unstructured, err error) {
	if observed.GetDeletionTimestamp() != nil || method == "" || method == OnDelete {
		return Nothing, nil, nil
	}
	object, changed, err := Merge(observed.Object, desired.Object)
	if err != nil || !changed {
		return Nothing, nil, err
	}
	if method == Recreate || method == RollingRecreate {
		return Delete, nil, nil
	}
	return Put, &unstructured.Unstructured{Object: object}, nil
}

// Desired prepares the children of a response: it sets the default namespace and the marks
// of the controller, in the objects of the list. If two children have the same name, the later
// one wins, and has the place of the first one.
func Desired(parent *unstructured.Unstructured, list []*unstructured.Unstructured, generate bool, decorator string) []*unstructured.Unstructured {
	desired, places := make([]*unstructured.Unstructured, 0, len(list)), make(map[childName]int, len(list))
	for _, c := range list {
		if c.GetNamespace() == "" && parent.GetNamespace() != "" {
			c.SetNamespace(parent.GetNamespace())
		}
		if labels := c.GetLabels(); generate && labels[uidLabel] == "" {
			if labels == nil {
				labels = map[string]string{}
			}
			labels[uidLabel] = string(parent.GetUID())
			c.SetLabels(labels)
		}
		if decorator != "" {
			annotations := c.GetAnnotations()
			if annotations == nil {
				annotations = map[string]string{}
			}
			annotations[decoratorAnnotation] = decorator
			c.SetAnnotations(annotations)
		}
		if i, ok := places[nameOf(c)]; ok {
			desired[i] = c
			continue
		}
		places[nameOf(c)] = len(desired)
		desired = append(desired, c)
	}
	return desired
}

// checkNamespaces refuses namespaced children of a namespaced parent in other namespaces. Their
// names may come from the parent, and so from a user without permissions in these namespaces. The
// garbage collector would delete such children, because an owner must be in the same namespace.
func (s *step) checkNamespaces(children []*unstructured.Unstructured) error {
	own := s.parent.GetNamespace()
	for _, d := range children {
		if own == "" || d.GetNamespace() == own {
			continue
		}
		r, err := s.env.resources.byKind(d.GetAPIVersion(), d.GetKind())
		if err != nil {
			return err
		}
		if r.namespaced {
			return fmt.Errorf("the child %s of %s is in another namespace than its parent: the operator creates no such children", describe(d), describe(s.parent))
		}
	}
	return nil
}

// childName identifies a child.
type childName struct{ apiVersion, kind, namespace, name string }

func nameOf(obj *unstructured.Unstructured) childName {
	return childName{obj.GetAPIVersion(), obj.GetKind(), obj.GetNamespace(), obj.GetName()}
}

// family are the children of one parent.
type family struct {
	parent   *unstructured.Unstructured
	observed objects
	desired  []*unstructured.Unstructured
}

// reconcile deletes, creates and updates children. It continues after errors.
func (c *controller) reconcile(ctx context.Context, f family) error {
	var problems []error
	wanted := make(map[childName]bool, len(f.desired))
	for _, d := range f.desired {
		wanted[nameOf(d)] = true
	}
	for _, kind := range sortedKeys(f.observed) {
		for _, name := range sortedKeys(f.observed[kind]) {
			obj := f.observed[kind][name]
			if wanted[nameOf(obj)] || obj.GetDeletionTimestamp() != nil {
				continue
			}
			problems = append(problems, c.remove(ctx, c.children[kind].resource, obj))
		}
	}
	ordered := slices.Clone(f.desired)
	slices.SortStableFunc(ordered, func(a, b *unstructured.Unstructured) int {
		return strings.Compare(a.GroupVersionKind().String(), b.GroupVersionKind().String())
	})
	for _, desired := range ordered {
		problems = append(problems, c.bring(ctx, f, desired))
	}
	if err := errors.Join(problems...); err != nil {
		return fmt.Errorf("can't reconcile children for %s: %w", describe(f.parent), err)
	}
	return nil
}

// bring creates or updates one child.
func (c *controller) bring(ctx context.Context, f family, desired *unstructured.Unstructured) error {
	observed := f.observed.get(desired)
	if c.env.fieldManager != "" {
		r, err := c.env.resources.byKind(desired.GetAPIVersion(), desired.GetKind())
		if err != nil {
			return err
		}
		return c.serverSide(ctx, r, f.parent, observed, desired)
	}
	if observed == nil {
		return c.create(ctx, f.parent, desired)
	}
	declared := c.children[kindKey(desired.GetAPIVersion(), desired.GetKind())]
	action, merged, err := Update(declared.strategy.Method, observed, desired)
	switch {
	case err != nil:
		return err
	case action == Delete:
		return c.remove(ctx, declared.resource, observed)
	case action == Put:
		_, err = c.in(declared.resource, merged.GetNamespace()).Update(ctx, merged, metav1.UpdateOptions{})
		if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
			return nil // the event of that change starts the next sync
		}
	}
	return err
}

func (c *controller) create(ctx context.Context, parent, desired *unstructured.Unstructured) error {
	r, err := c.env.resources.byKind(desired.GetAPIVersion(), desired.GetKind())
	if err != nil {
		return err
	}
	obj := desired.DeepCopy()
	if err := Annotate(obj.Object, desired.Object); err != nil {
		return err
	}
	own(parent, obj)
	_, err = c.in(r, obj.GetNamespace()).Create(ctx, obj, metav1.CreateOptions{})
	if apierrors.IsAlreadyExists(err) {
		c.env.log.Warn("Another object has the name of a child.", "controller", c.name, "parent", describe(parent), "child", describe(desired))
		return nil
	}
	return err
}

// remove deletes a child, unless another object has taken its name in the meantime.
func (c *controller) remove(ctx context.Context, r resource, obj *unstructured.Unstructured) error {
	uid, background := obj.GetUID(), metav1.DeletePropagationBackground
	err := c.in(r, obj.GetNamespace()).Delete(ctx, obj.GetName(), metav1.DeleteOptions{
		Preconditions: &metav1.Preconditions{UID: &uid}, PropagationPolicy: &background,
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return nil
	}
	return err
}

// in returns the client of a resource. Cluster-scoped objects have no namespace in paths.
func (c *controller) in(r resource, namespace string) dynamic.ResourceInterface {
	if !r.namespaced {
		return c.env.dynamic.Resource(r.gvr)
	}
	return c.env.dynamic.Resource(r.gvr).Namespace(namespace)
}

// describe names an object in texts: KIND NAMESPACE/NAME.
func describe(obj *unstructured.Unstructured) string { return obj.GetKind() + " " + identity(obj) }
