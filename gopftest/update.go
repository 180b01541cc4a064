package gopftest

import (
	"bytes"
	"errors"
	"maps"
	"reflect"
	"slices"

	admissionv1 "k8s.io/api/admission/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// update replaces an object or its status. It takes ownership of obj.
func (s *scope) update(obj *unstructured.Unstructured) (*entry, error) {
	if err := s.checkType(obj); err != nil {
		return nil, err
	}
	if err := normalizeMetadata(obj); err != nil {
		return nil, apierrors.NewBadRequest(err.Error())
	}
	switch obj.GetName() {
	case s.name:
	case "":
		return nil, apierrors.NewBadRequest("name must be provided")
	default:
		return nil, s.otherName(obj)
	}
	return s.change(obj.GetUID(), func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		return s.track(obj, old), nil
	})
}

func (s *scope) otherName(obj *unstructured.Unstructured) error {
	return apierrors.NewBadRequest("the name of the object (" + obj.GetName() + ") does not match the name on the URL (" + s.name + ")")
}

// change is the common part of updates and patches. next computes the new state from the
// current one; then the rules of the API apply. A change without effect keeps the
// resource version and causes no event.
func (s *scope) change(uid types.UID, next func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*entry, error) {
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	return s.changeLocked(uid, next)
}

// changeLocked is change for callers that hold the lock of the store. The lock is
// released while webhooks are called. If the object changes meanwhile, it starts again.
func (s *scope) changeLocked(uid types.UID, next func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*entry, error) {
	for range conflictRetries {
		if e, err := s.changeOnce(uid, next); !errors.Is(err, errOvertaken) {
			return e, err
		}
	}
	return nil, s.modified()
}

// conflictRetries limits the attempts of one change, as in the real API server.
const conflictRetries = 5

// errOvertaken means that the object changed while webhooks were called.
var errOvertaken = errors.New("the object changed while webhooks were called")

func (s *scope) changeOnce(uid types.UID, next func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)) (*entry, error) {
	existing, ok := s.table().objects[s.key()]
	if !ok {
		return nil, s.notFound()
	}
	old := existing.object()
	if uid != "" && uid != old.GetUID() {
		return nil, errUID(s, uid, old.GetUID())
	}
	obj, err := next(old.DeepCopy())
	if err != nil {
		return nil, err
	}
	if err := s.checkVersion(obj, old); err != nil {
		return nil, err
	}
	if err := s.checkNamespace(obj); err != nil {
		return nil, err
	}
	overtaken := func() bool { return s.table().objects[s.key()] != existing }
	asked := review{operation: admissionv1.Update, object: obj, old: old}
	if hooks := s.mutators(asked); len(hooks) > 0 {
		s.prepareSchema(obj)
		if obj, err = s.mutate(asked, hooks); err != nil {
			return nil, err
		}
		if overtaken() {
			return nil, errOvertaken
		}
	}
	s.prepareChange(obj, old)
	if err := s.validate(obj, old); err != nil {
		return nil, err
	}
	keepTimes(obj, old)
	asked.object = obj
	if hooks := s.validators(asked); len(hooks) > 0 {
		if err := s.validateBy(asked, hooks); err != nil {
			return nil, err
		}
		if overtaken() {
			return nil, errOvertaken
		}
	}
	s.prepareStored(obj)

	switch {
	case bytes.Equal(encode(obj.Object), existing.raw):
		return existing, nil
	case s.dryRun:
		return newEntry(obj, existing.version), nil
	case emptied(obj, old):
		// The response contains the new state, which is never stored. Watchers receive
		// the stored one.
		s.store().remove(s.resource.groupResource(), existing)
		return newEntry(obj, existing.version), nil
	default:
		return s.store().put(s.resource.groupResource(), obj), nil
	}
}

// checkVersion implements optimistic locking.
func (s *scope) checkVersion(obj, old *unstructured.Unstructured) error {
	asked, err := parseVersion(obj.GetResourceVersion())
	if err != nil {
		return err
	}
	if asked == 0 && !s.resource.custom() && !s.resource.builtin.locked {
		obj.SetResourceVersion(old.GetResourceVersion())
		return nil
	}
	if asked == 0 {
		// Like the real API server, put the resource into the kind here.
		kind := s.groupKind()
		kind.Kind = s.resource.Plural
		return apierrors.NewInvalid(kind, s.name, field.ErrorList{
			field.Invalid(field.NewPath("metadata", "resourceVersion"), 0, "must be specified for an update")})
	}
	if obj.GetResourceVersion() != old.GetResourceVersion() {
		return s.modified()
	}
	return nil
}

// prepareChange restores the fields that this endpoint must not change.
func (s *scope) prepareChange(obj, old *unstructured.Unstructured) {
	s.prepareSchema(obj)
	setOrRemove(obj, "generation", old.GetGeneration() != 0, old.GetGeneration())
	switch {
	case s.subresource == "status" && s.resource.custom():
		status, ok := obj.Object["status"]
		managed := obj.GetManagedFields()
		obj.Object = old.DeepCopy().Object
		setField(obj, "status", status, ok)
		if len(managed) > 0 {
			obj.SetManagedFields(managed) // they name the manager of the status
		}
	case s.subresource == "status":
		keepAllBut(obj, old, "metadata", "status")
	case s.version.status:
		status, ok := old.Object["status"]
		setField(obj, "status", status, ok)
	}
	if s.resource.counts() && s.subresource == "" && s.wantsMore(obj, old) {
		obj.SetGeneration(old.GetGeneration() + 1)
	}

	if obj.GetUID() == "" {
		obj.SetUID(old.GetUID())
	}
	obj.SetCreationTimestamp(old.GetCreationTimestamp())
	if deleted := old.GetDeletionTimestamp(); deleted != nil {
		obj.SetDeletionTimestamp(deleted)
	}
	if obj.GetDeletionGracePeriodSeconds() == nil && old.GetDeletionGracePeriodSeconds() != nil {
		obj.SetDeletionGracePeriodSeconds(old.GetDeletionGracePeriodSeconds())
	}
}

// wantsMore reports whether the desired state changes and the generation must increase.
func (s *scope) wantsMore(obj, old *unstructured.Unstructured) bool {
	if s.resource.custom() {
		return !reflect.DeepEqual(without(obj.Object, "metadata"), without(old.Object, "metadata"))
	}
	if s.resource.Kind.Kind == "Deployment" && !maps.Equal(obj.GetAnnotations(), old.GetAnnotations()) {
		return true
	}
	return !reflect.DeepEqual(without(obj.Object, "metadata", "status"), without(old.Object, "metadata", "status"))
}

// emptied reports whether the last finalizer of a deleted object is gone.
func emptied(obj, old *unstructured.Unstructured) bool {
	grace := old.GetDeletionGracePeriodSeconds()
	return len(obj.GetFinalizers()) == 0 && old.GetDeletionTimestamp() != nil && (grace == nil || *grace == 0)
}

func setOrRemove(obj *unstructured.Unstructured, name string, ok bool, value any) {
	if !ok {
		unstructured.RemoveNestedField(obj.Object, "metadata", name)
		return
	}
	obj.Object["metadata"].(map[string]any)[name] = value
}

func setField(obj *unstructured.Unstructured, name string, value any, ok bool) {
	if ok {
		obj.Object[name] = value
	} else {
		delete(obj.Object, name)
	}
}

func keepAllBut(obj, old *unstructured.Unstructured, names ...string) {
	kept := without(old.Object, names...)
	for _, name := range names {
		if v, ok := obj.Object[name]; ok {
			kept[name] = v
		}
	}
	obj.Object = kept
}

func without(content map[string]any, names ...string) map[string]any {
	content = maps.Clone(content)
	maps.DeleteFunc(content, func(k string, _ any) bool { return slices.Contains(names, k) })
	return content
}
