package gopftest

import (
	"errors"
	"fmt"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	utilrand "k8s.io/apimachinery/pkg/util/rand"
	"k8s.io/apimachinery/pkg/util/uuid"
)

// create stores a new object. It takes ownership of obj.
func (s *scope) create(obj *unstructured.Unstructured) (*entry, error) {
	s.settleKind(obj.GetKind())
	if err := s.checkType(obj); err != nil {
		return nil, err
	}
	if err := normalizeMetadata(obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	obj.SetManagedFields(nil) // tracked from the first apply on
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	return s.createLocked(obj)
}

func (s *scope) createLocked(obj *unstructured.Unstructured) (*entry, error) {
	if err := s.checkNamespace(obj); err != nil {
		return nil, err
	}
	wipe(obj)
	asked := review{operation: admissionv1.Create, object: obj}
	if hooks := s.mutators(asked); len(hooks) > 0 {
		s.prepareSchema(obj)
		var err error
		if obj, err = s.mutate(asked, hooks); err != nil {
			return nil, err
		}
		if err := s.checkNamespace(obj); err != nil {
			return nil, err
		}
	}
	if s.resource.terminating {
		return nil, apierrors.NewForbidden(s.resource.groupResource(), obj.GetName(),
			errors.New("create not allowed while custom resource definition is terminating"))
	}
	if err := s.checkOpenNamespace(obj.GetName()); err != nil {
		return nil, err
	}
	generated := obj.GetName() == "" && obj.GetGenerateName() != ""
	if generated {
		obj.SetName(generateName(obj.GetGenerateName()))
	}
	s.prepareNew(obj)
	if err := s.validate(obj, nil); err != nil {
		return nil, err
	}
	if obj.GetResourceVersion() != "" {
		return nil, errors.New("resourceVersion should not be set on objects to be created")
	}
	asked.object = obj
	if hooks := s.validators(asked); len(hooks) > 0 {
		if err := s.validateBy(asked, hooks); err != nil {
			return nil, err
		}
	}
	s.prepareStored(obj)
	if _, exists := s.table().objects[objectKey{obj.GetNamespace(), obj.GetName()}]; exists {
		if generated {
			return nil, apierrors.NewGenerateNameConflict(s.resource.groupResource(), obj.GetName(), 1)
		}
		return nil, apierrors.NewAlreadyExists(s.resource.groupResource(), obj.GetName())
	}
	if s.dryRun {
		return newEntry(obj, 0), nil
	}
	return s.store().put(s.resource.groupResource(), obj), nil
}

// wipe removes the fields that only the API server may set.
func wipe(obj *unstructured.Unstructured) {
	obj.SetDeletionTimestamp(nil)
	obj.SetDeletionGracePeriodSeconds(nil)
	obj.SetUID("")
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
}

// table returns the objects of the scope's resource. The store must be locked.
func (s *scope) table() *table { return s.store().table(s.resource.groupResource()) }

// prepareNew sets the fields that the API server sets, and removes those that it ignores.
func (s *scope) prepareNew(obj *unstructured.Unstructured) {
	obj.SetUID(uuid.NewUUID())
	obj.SetCreationTimestamp(metav1.NewTime(time.Now().UTC().Truncate(time.Second)))
	unstructured.RemoveNestedField(obj.Object, "metadata", "generation")
	if s.resource.counts() {
		obj.SetGeneration(1)
	}
	if s.version.status {
		delete(obj.Object, "status")
	}
	s.prepareSchema(obj)
	s.prepareBuiltin(obj)
}

// prepareSchema prunes and defaults obj by the schema of the requested version.
func (s *scope) prepareSchema(obj *unstructured.Unstructured) { s.version.schema.prepare(obj) }

// prepareStored prunes and defaults obj by the schema of the storage version.
func (s *scope) prepareStored(obj *unstructured.Unstructured) {
	if stored, ok := s.resource.version(s.resource.Version); ok && stored != s.version {
		stored.schema.prepare(obj)
	}
}

// checkOpenNamespace returns an error if the namespace does not exist or is being
// deleted. The store must be locked.
func (s *scope) checkOpenNamespace(name string) error {
	if !s.resource.Namespaced {
		return nil
	}
	gr := namespaceResource()
	ns, ok := s.store().table(gr).objects[objectKey{name: s.namespace}]
	if !ok {
		return apierrors.NewNotFound(gr, s.namespace)
	}
	if ns.object().GetDeletionTimestamp() == nil {
		return nil
	}
	err := apierrors.NewForbidden(s.resource.groupResource(), name,
		fmt.Errorf("unable to create new content in namespace %s because it is being terminated", s.namespace))
	err.ErrStatus.Details.Causes = append(err.ErrStatus.Details.Causes, metav1.StatusCause{
		Type: "NamespaceTerminating", Message: fmt.Sprintf("namespace %s is being terminated", s.namespace), Field: "metadata.namespace",
	})
	return err
}

// generateName returns a name as the real API server generates it: the base, cut to
// leave room, plus five random characters.
func generateName(base string) string {
	const longest, random = 63, 5
	return base[:min(len(base), longest-random)] + utilrand.String(random)
}
