package metacontroller

import (
	"context"
	"maps"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// decorate syncs the parent of a DecoratorController.
func (s *step) decorate(ctx context.Context) error {
	observed := s.empty()
	for kind, declared := range s.children {
		for _, obj := range s.storedIn(declared.resource, s.parent.GetNamespace()) {
			ref := metav1.GetControllerOfNoCopy(obj)
			if ref != nil && ref.UID == s.parent.GetUID() && obj.GetAnnotations()[decoratorAnnotation] == s.name {
				obj, err := s.whole(ctx, declared.resource, obj)
				if err != nil {
					return err
				}
				if obj != nil {
					observed.add(kind, obj)
				}
			}
		}
	}
	related, err := s.related(ctx)
	if err != nil {
		return err
	}
	var response DecoratorHookResponse
	if err := s.ask(ctx, s.parent, observed, related, &response); err != nil {
		return err
	}
	desired := Desired(s.parent, response.Attachments, false, s.name)
	if err := s.checkNamespaces(desired); err != nil {
		return err
	}
	s.again(s.key, response.ResyncAfterSeconds)
	// The children of a parent that left the selection are managed in the last sync too.
	manage := managed(s.parent, s.finalizer)
	if done, err := s.writeParent(ctx, &response); err != nil || done {
		return err
	}
	if !manage {
		return nil
	}
	return s.reconcile(ctx, family{parent: s.parent, observed: observed, desired: desired})
}

// Decorated returns a parent with the labels, annotations and status of a response. The
// results report which parts differ.
func Decorated(parent *unstructured.Unstructured, response *DecoratorHookResponse) (changed *unstructured.Unstructured, metadata, status bool) {
	changed = parent.DeepCopy()
	labels, annotations := overlay(parent.GetLabels(), response.Labels), overlay(parent.GetAnnotations(), response.Annotations)
	if !maps.Equal(labels, parent.GetLabels()) {
		changed.SetLabels(labels)
		metadata = true
	}
	if !maps.Equal(annotations, parent.GetAnnotations()) {
		changed.SetAnnotations(annotations)
		metadata = true
	}
	if response.Status != nil && !reflect.DeepEqual(parent.Object["status"], any(response.Status)) {
		changed.Object["status"] = response.Status
		status = true
	}
	return changed, metadata, status
}

// overlay returns a map with changes: null removes a key.
func overlay(from map[string]string, changes map[string]*string) map[string]string {
	to := maps.Clone(from)
	if to == nil {
		to = map[string]string{}
	}
	for key, value := range changes {
		if value == nil {
			delete(to, key)
		} else {
			to[key] = *value
		}
	}
	return to
}

// writeParent writes the labels, annotations and status of a response, and removes the
// finalizer of a finalized parent. done reports that the sync ends here, because the parent
// has changed or is gone.
func (s *step) writeParent(ctx context.Context, response *DecoratorHookResponse) (done bool, err error) {
	changed, metadata, status := Decorated(s.parent, response)
	if response.Finalized {
		metadata = setFinalizer(changed, s.finalizer, false) || metadata
	}
	client := s.in(s.of.resource, s.parent.GetNamespace())
	if status && s.of.status {
		written, err := client.UpdateStatus(ctx, changed, metav1.UpdateOptions{})
		if err != nil {
			return true, swallow(err)
		}
		changed.SetResourceVersion(written.GetResourceVersion())
		s.wrote(s.key, written)
		status = false
	}
	if !metadata && !status {
		return false, nil
	}
	written, err := client.Update(ctx, changed, metav1.UpdateOptions{})
	if err == nil {
		s.wrote(s.key, written)
	}
	return err != nil, swallow(err)
}

// swallow returns no error for objects that changed or are gone: their events start the
// next sync.
func swallow(err error) error {
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil
	}
	return err
}
