package gopftest

import (
	"fmt"
	"net/http"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// maxJSONPatchOperations is the limit of the real API server.
const maxJSONPatchOperations = 10000

// patch changes an object or its status by a merge patch, a JSON patch or, for
// well-known kinds, a strategic merge patch.
func (s *scope) patch(kind types.PatchType, patch []byte) (*entry, error) {
	apply, err := s.patcher(kind, patch)
	if err != nil {
		return nil, err
	}
	return s.change("", func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		old.SetAPIVersion(s.apiVersion()) // the patch refers to the version that its sender sees
		obj, err := apply(old)
		if err != nil {
			return nil, err
		}
		if err := s.receive(obj); err != nil {
			return nil, err
		}
		return s.track(obj, old), nil
	})
}

// receive checks the result of a patch.
func (s *scope) receive(obj *unstructured.Unstructured) error {
	if err := s.checkType(obj); err != nil {
		return s.unusable(encode(obj.Object), err)
	}
	if err := normalizeMetadata(obj); err != nil {
		return s.unusable(encode(obj.Object), err)
	}
	switch obj.GetName() {
	case s.name:
		return nil
	case "":
		return apierrors.NewBadRequest("the name of the object (" + s.name + " based on URL) was undeterminable: name must be provided")
	default:
		return s.otherName(obj)
	}
}

// encoded turns a patch of JSON text into one of objects.
func (s *scope) encoded(apply func(doc []byte) ([]byte, error)) patcher {
	return func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		patched, err := apply(encode(old.Object))
		if err != nil {
			return nil, err
		}
		return s.decoded(patched)
	}
}

// decoded decodes the result of a patch.
func (s *scope) decoded(patched []byte) (*unstructured.Unstructured, error) {
	var content map[string]any
	if err := utiljson.Unmarshal(patched, &content); err != nil {
		return nil, s.unusable(patched, err)
	}
	return &unstructured.Unstructured{Object: content}, nil
}

// patcher returns the patched object. It does not change the old one.
type patcher func(old *unstructured.Unstructured) (*unstructured.Unstructured, error)

// patcher parses the patch before the object is locked. An invalid patch is thus a
// different error than one that does not apply.
func (s *scope) patcher(kind types.PatchType, patch []byte) (patcher, error) {
	switch kind {
	case types.JSONPatchType:
		ops, err := jsonpatch.DecodePatch(patch)
		if err != nil {
			return nil, apierrors.NewBadRequest(err.Error())
		}
		if len(ops) > maxJSONPatchOperations {
			return nil, apierrors.NewRequestEntityTooLargeError(fmt.Sprintf(
				"The allowed maximum operations in a JSON patch is %d, got %d", maxJSONPatchOperations, len(ops)))
		}
		return s.encoded(func(doc []byte) ([]byte, error) {
			patched, err := ops.Apply(doc)
			if err != nil {
				return nil, apierrors.NewGenericServerResponse(http.StatusUnprocessableEntity, "", schema.GroupResource{}, "", err.Error(), 0, false)
			}
			return patched, nil
		}), nil
	case types.MergePatchType:
		var content map[string]any
		if err := utiljson.Unmarshal(patch, &content); err != nil {
			return nil, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
		}
		if content == nil {
			return nil, apierrors.NewBadRequest("Invalid JSON Patch")
		}
		return func(old *unstructured.Unstructured) (*unstructured.Unstructured, error) {
			return &unstructured.Unstructured{Object: mergePatched(old.Object, content)}, nil
		}, nil
	case types.StrategicMergePatchType:
		if s.resource.custom() {
			return nil, errUnsupportedMediaType(s.patchTypes()...)
		}
		typed, err := s.newType()
		if err != nil {
			return nil, errUnsupportedMediaType(s.patchTypes()...)
		}
		return s.encoded(func(doc []byte) ([]byte, error) {
			patched, err := strategicpatch.StrategicMergePatch(doc, patch, typed)
			if err != nil {
				return nil, apierrors.NewBadRequest(err.Error())
			}
			return patched, nil
		}), nil
	default:
		return nil, errUnsupportedMediaType(s.patchTypes()...)
	}
}

// patchTypes returns the media types of the patches that the resource supports.
func (s *scope) patchTypes() []string {
	if s.resource.custom() {
		return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.ApplyYAMLPatchType)}
	}
	return []string{string(types.JSONPatchType), string(types.MergePatchType), string(types.StrategicMergePatchType), string(types.ApplyYAMLPatchType)}
}

func (s *scope) unusable(patched []byte, err error) error {
	return apierrors.NewInvalid(schema.GroupKind{}, "", field.ErrorList{
		field.Invalid(field.NewPath("patch"), string(patched), err.Error())})
}
