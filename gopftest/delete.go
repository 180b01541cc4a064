package gopftest

import (
	"fmt"
	"slices"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// delete removes an object, or marks it as deleted if it has finalizers. It returns the
// marked object, or nil and a Status with the UID if the object is removed.
func (s *scope) delete(options *metav1.DeleteOptions) (*entry, *metav1.Status, error) {
	if errs := metav1validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return nil, nil, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	if err := s.askForDeletion(); err != nil {
		return nil, nil, err
	}
	return s.deleteLocked(options)
}

// askForDeletion calls the webhooks for a deletion. They are not called for deletions
// made by the cluster itself: of dependents, and of the contents of namespaces.
func (s *scope) askForDeletion() error {
	asked := review{operation: admissionv1.Delete}
	if hooks := s.mutators(asked); len(hooks) > 0 {
		if _, err := s.mutate(asked, hooks); err != nil {
			return err
		}
	}
	existing, ok := s.table().objects[s.key()]
	if !ok {
		return nil
	}
	asked.old = existing.object()
	if hooks := s.validators(asked); len(hooks) > 0 {
		return s.validateBy(asked, hooks)
	}
	return nil
}

func (s *scope) deleteLocked(options *metav1.DeleteOptions) (*entry, *metav1.Status, error) {
	existing, ok := s.table().objects[s.key()]
	if !ok {
		return nil, nil, s.notFound()
	}
	obj := existing.object()
	if err := s.checkPreconditions(obj, options.Preconditions); err != nil {
		return nil, nil, err
	}
	if marked, ok := s.terminate(existing); ok {
		return marked, nil, nil
	}
	obj.SetFinalizers(finalizersFor(obj, options))
	if len(obj.GetFinalizers()) == 0 {
		if !s.dryRun {
			s.store().remove(s.resource.groupResource(), existing)
		}
		return nil, s.success(obj), nil
	}
	markDeleted(obj)
	if s.dryRun || string(encode(obj.Object)) == string(existing.raw) {
		return newEntry(obj, existing.version), nil, nil
	}
	return s.store().put(s.resource.groupResource(), obj), nil, nil
}

func (s *scope) checkPreconditions(obj *unstructured.Unstructured, p *metav1.Preconditions) error {
	if p == nil {
		return nil
	}
	// The real server names the kind here where it names the resource elsewhere.
	conflict := func(format string, asked, found any) error {
		return apierrors.NewConflict(schema.GroupResource{Group: s.resource.Group, Resource: s.resource.Kind.Kind}, s.name,
			fmt.Errorf(format, asked, found))
	}
	if p.UID != nil && *p.UID != obj.GetUID() {
		return conflict("the UID in the precondition (%s) does not match the UID in record (%s). "+
			"The object might have been deleted and then recreated", *p.UID, obj.GetUID())
	}
	if p.ResourceVersion != nil && *p.ResourceVersion != obj.GetResourceVersion() {
		return conflict("the ResourceVersion in the precondition (%s) does not match the ResourceVersion in record (%s). "+
			"The object might have been modified", *p.ResourceVersion, obj.GetResourceVersion())
	}
	return nil
}

// finalizersFor adds or removes the finalizers that control the deletion of dependents.
func finalizersFor(obj *unstructured.Unstructured, options *metav1.DeleteOptions) []string {
	finalizers := obj.GetFinalizers()
	if obj.GetDeletionTimestamp() != nil || options.PropagationPolicy == nil {
		return finalizers
	}
	finalizers = slices.DeleteFunc(finalizers, func(f string) bool {
		return f == metav1.FinalizerOrphanDependents || f == metav1.FinalizerDeleteDependents
	})
	switch *options.PropagationPolicy {
	case metav1.DeletePropagationOrphan:
		finalizers = append(finalizers, metav1.FinalizerOrphanDependents)
	case metav1.DeletePropagationForeground:
		finalizers = append(finalizers, metav1.FinalizerDeleteDependents)
	}
	return finalizers
}

func markDeleted(obj *unstructured.Unstructured) {
	if obj.GetDeletionTimestamp() == nil {
		now := metav1.NewTime(time.Now().UTC().Truncate(time.Second))
		obj.SetDeletionTimestamp(&now)
		if obj.GetGeneration() > 0 {
			obj.SetGeneration(obj.GetGeneration() + 1)
		}
	}
	obj.SetDeletionGracePeriodSeconds(new(int64))
}

// success returns the response for a removed object.
func (s *scope) success(obj *unstructured.Unstructured) *metav1.Status {
	return &metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"},
		Status:   metav1.StatusSuccess,
		Details: &metav1.StatusDetails{
			Name: obj.GetName(), UID: obj.GetUID(),
			Group: s.resource.Group, Kind: s.resource.Plural, // the resource, as in the real API server's responses
		},
	}
}
