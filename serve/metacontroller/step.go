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
	"k8s.io/client-go/util/retry"
)

// step is one sync of one parent.
type step struct {
	*controller
	key        key
	of         parents
	parent     *unstructured.Unstructured
	finalizing bool
	slot       bool // the sync may read large objects
	size       int  // of those that it read
}

// hold adds the finalizer to a living parent if there is a finalize hook, and removes it if
// there is none. It returns the updated parent. Nil means that it is gone.
func (c *controller) hold(ctx context.Context, r resource, parent *unstructured.Unstructured, held bool) (*unstructured.Unstructured, error) {
	wanted := c.spec.Hooks.Finalize != nil
	if held == wanted || wanted && parent.GetDeletionTimestamp() != nil {
		return parent, nil
	}
	return c.edit(ctx, r, parent, func(p *unstructured.Unstructured) bool {
		return setFinalizer(p, c.finalizer, wanted)
	})
}

// edit reads an object, changes it and writes it. It retries after conflicts. Nil means that
// the object is gone. If the function returns false, it has changed nothing.
func (c *controller) edit(ctx context.Context, r resource, obj *unstructured.Unstructured, change func(*unstructured.Unstructured) bool) (*unstructured.Unstructured, error) {
	var result *unstructured.Unstructured
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		live, err := c.in(r, obj.GetNamespace()).Get(ctx, obj.GetName(), metav1.GetOptions{})
		if err != nil {
			return err
		}
		if live.GetUID() != obj.GetUID() {
			return apierrors.NewNotFound(r.gvr.GroupResource(), obj.GetName())
		}
		if !change(live) {
			result = live
			return nil
		}
		result, err = c.in(r, obj.GetNamespace()).Update(ctx, live, metav1.UpdateOptions{})
		return err
	})
	if apierrors.IsNotFound(err) {
		return nil, nil
	}
	if result != nil {
		result.SetManagedFields(nil)
	}
	return result, err
}

// setFinalizer adds or removes a finalizer. It reports whether that changed the object.
func setFinalizer(obj *unstructured.Unstructured, name string, wanted bool) bool {
	list := obj.GetFinalizers()
	if slices.Contains(list, name) == wanted {
		return false
	}
	if wanted {
		list = append(list, name)
	} else {
		list = slices.DeleteFunc(list, func(f string) bool { return f == name })
	}
	obj.SetFinalizers(list)
	return true
}

// managed reports whether the children of a parent are managed: if it lives, or if this
// controller holds it and the garbage collector does not delete it.
func managed(parent *unstructured.Unstructured, finalizer string) bool {
	if parent.GetDeletionTimestamp() == nil {
		return true
	}
	collected := func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	}
	return slices.Contains(parent.GetFinalizers(), finalizer) && !slices.ContainsFunc(parent.GetFinalizers(), collected)
}

// ask calls the finalize or the sync hook.
func (s *step) ask(ctx context.Context, parent *unstructured.Unstructured, observed, related objects, into any) error {
	h, parentField, childrenField := s.sync, "parent", "children"
	if s.finalizing {
		h = s.finalize
	}
	if !s.controller.composite {
		parentField, childrenField = "object", "attachments"
	}
	if h == nil {
		if s.controller.composite {
			return fmt.Errorf("sync hook nil//not defined for %s", describe(parent))
		}
		return errors.New("no enabled hooks found")
	}
	relatedVersion := h.version
	if s.customize != nil {
		relatedVersion = s.customize.version
	}
	err := h.call(ctx, parent, map[string]any{
		"controller": s.requested, parentField: parent.Object, childrenField: observed.request(h.version, parent.GetNamespace()),
		"related": related.request(relatedVersion, parent.GetNamespace()), "finalizing": s.finalizing,
	}, into)
	if err == nil {
		return nil
	}
	err = fmt.Errorf("%s hook failed (version=%s): %w", h.kind, h.version, err)
	if s.controller.composite {
		err = fmt.Errorf("sync hook failed for %s: %w", describe(parent), err)
	}
	return err
}

// empty returns the map of observed children without objects.
func (c *controller) empty() objects {
	observed := objects{}
	for kind := range c.children {
		observed[kind] = map[string]*unstructured.Unstructured{}
	}
	return observed
}

// longestName is the limit of the API server for the part of a finalizer after the slash.
const longestName = 63

// checkFinalizer returns an error if the controller has a finalize hook and the API server
// would reject its finalizer.
func (c *controller) checkFinalizer() error {
	_, name, _ := strings.Cut(c.finalizer, "/")
	over := len(name) - longestName
	if c.spec.Hooks.Finalize == nil || over <= 0 {
		return nil
	}
	return fmt.Errorf("the finalizer %s is too long: a controller with a finalize hook needs a name of at most %d bytes, not %d",
		c.finalizer, len(c.name)-over, len(c.name))
}
