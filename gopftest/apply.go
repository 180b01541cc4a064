package gopftest

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	metav1validation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
	"sigs.k8s.io/yaml"
)

// apply does a server-side apply: the manager takes ownership of the fields in the
// patch. It creates the object if it does not exist. Ownership is tracked from the
// object's first apply on; fields written earlier belong to "before-first-apply".
func (s *scope) apply(patch []byte, force *bool) (e *entry, created bool, err error) {
	options := &metav1.PatchOptions{FieldManager: s.manager, Force: force}
	if errs := metav1validation.ValidatePatchOptions(options, types.ApplyYAMLPatchType); len(errs) > 0 {
		return nil, false, apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "PatchOptions"}, "", errs)
	}
	wanted := &unstructured.Unstructured{Object: map[string]any{}}
	if err := yaml.Unmarshal(patch, &wanted.Object); err != nil {
		return nil, false, apierrors.NewBadRequest(fmt.Sprintf("error decoding patch: %v", err))
	}
	s.settleKind(wanted.GetKind())
	fields, err := s.fieldManager()
	if err != nil {
		return nil, false, err
	}
	merge := func(live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
		live.SetAPIVersion(s.apiVersion())
		applied, err := fields.Apply(live, wanted.DeepCopy(), s.manager, force != nil && *force)
		if err != nil {
			return nil, err
		}
		obj, err := s.decoded(encode(applied))
		if err != nil {
			return nil, err
		}
		return obj, s.receive(obj)
	}
	if err := s.checkMayCreate(); err != nil {
		return nil, false, err
	}
	s.store().mu.Lock()
	defer s.store().mu.Unlock()
	if _, ok := s.table().objects[s.key()]; ok {
		e, err = s.changeLocked("", merge)
		return e, false, err
	}
	if s.subresource != "" {
		return nil, false, s.notFound()
	}
	fresh := &unstructured.Unstructured{Object: map[string]any{}}
	fresh.SetKind(s.resource.Kind.Kind)
	obj, err := merge(fresh)
	if err != nil {
		return nil, false, err
	}
	obj.SetResourceVersion("") // it was a precondition, which a missing object fulfills
	e, err = s.createLocked(obj)
	return e, true, err
}

// checkMayCreate checks the permission to create the object if it does not exist: an apply
// that creates an object requires both permissions.
func (s *scope) checkMayCreate() error {
	s.store().mu.Lock()
	_, exists := s.table().objects[s.key()]
	s.store().mu.Unlock()
	if exists || s.mayCreate == nil || s.subresource != "" {
		return nil
	}
	return s.mayCreate()
}

// track updates the field ownership after a write that is not an apply.
func (s *scope) track(obj, old *unstructured.Unstructured) *unstructured.Unstructured {
	if len(old.GetManagedFields()) == 0 {
		obj.SetManagedFields(nil)
		return obj
	}
	fields, err := s.fieldManager()
	if err != nil {
		return obj
	}
	return fields.UpdateNoErrors(old.DeepCopy(), obj, s.manager).(*unstructured.Unstructured)
}

// keepTimes reverts obj to old if they differ only in the times of managed fields.
func keepTimes(obj, old *unstructured.Unstructured) {
	timeless := func(u *unstructured.Unstructured) *unstructured.Unstructured {
		u = u.DeepCopy()
		fields := u.GetManagedFields()
		for i := range fields {
			fields[i].Time = nil
		}
		u.SetManagedFields(fields)
		return u
	}
	if len(old.GetManagedFields()) > 0 && reflect.DeepEqual(timeless(obj).Object, timeless(old).Object) {
		obj.Object = old.DeepCopy().Object
	}
}

// fieldManager returns the real API server's merger for this endpoint.
func (s *scope) fieldManager() (*managedfields.FieldManager, error) {
	gvk := s.groupKind().WithVersion(s.version.name)
	plain := asTheyAre{gvk: gvk}
	// The main endpoint ignores the status, and the status endpoint ignores the rest.
	reset := map[fieldpath.APIVersion]fieldpath.Filter{}
	switch {
	case s.subresource == "status":
		reset[fieldpath.APIVersion(s.apiVersion())] = fieldpath.NewExcludeSetFilter(
			fieldpath.NewSet(fieldpath.MakePathOrDie("spec"), fieldpath.MakePathOrDie("metadata")))
	case s.version.status:
		reset[fieldpath.APIVersion(s.apiVersion())] = fieldpath.NewExcludeSetFilter(fieldpath.NewSet(fieldpath.MakePathOrDie("status")))
	}
	if !s.resource.custom() {
		types, err := builtinTypes(s)
		if err != nil {
			return nil, err
		}
		return managedfields.NewDefaultFieldManager(types,
			plain, plain, plain, gvk, gvk.GroupVersion(), s.subresource, reset)
	}
	types, err := s.typeConverter()
	if err != nil {
		return nil, err
	}
	return managedfields.NewDefaultCRDFieldManager(types, plain, plain, plain, gvk, gvk.GroupVersion(), s.subresource, reset)
}

// typeConverter returns the merge rules of a custom resource: those of its schema,
// plus those that are common to all metadata.
func (s *scope) typeConverter() (managedfields.TypeConverter, error) {
	model := &spec.Schema{}
	if s.version.schema != nil {
		model = s.version.schema.structural.ToKubeOpenAPI()
	} else {
		model.AddExtension("x-kubernetes-preserve-unknown-fields", true)
	}
	metadata := &spec.Schema{}
	if err := json.Unmarshal([]byte(metadataSchema), metadata); err != nil {
		return nil, err
	}
	model.Typed("object", "")
	model.SetProperty("apiVersion", *spec.StringProperty())
	model.SetProperty("kind", *spec.StringProperty())
	model.SetProperty("metadata", *metadata)
	gvk := s.groupKind().WithVersion(s.version.name)
	model.AddExtension("x-kubernetes-group-version-kind", []any{map[string]any{"group": gvk.Group, "version": gvk.Version, "kind": gvk.Kind}})
	return managedfields.NewTypeConverter(map[string]*spec.Schema{strings.ToLower(gvk.Kind): model}, s.version.schema == nil)
}

// metadataSchema defines how lists in metadata merge.
const metadataSchema = `{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
	"labels":{"type":"object","additionalProperties":{"type":"string"}},
	"annotations":{"type":"object","additionalProperties":{"type":"string"}},
	"finalizers":{"type":"array","x-kubernetes-list-type":"set","items":{"type":"string"}},
	"ownerReferences":{"type":"array","x-kubernetes-list-type":"map","x-kubernetes-list-map-keys":["uid"],
		"items":{"type":"object","x-kubernetes-map-type":"atomic","properties":{
			"apiVersion":{"type":"string"},"kind":{"type":"string"},"name":{"type":"string"},"uid":{"type":"string"},
			"controller":{"type":"boolean"},"blockOwnerDeletion":{"type":"boolean"}}}}}}`

// asTheyAre does no conversion: all objects are untyped, and versions differ only in name.
type asTheyAre struct{ gvk schema.GroupVersionKind }

// Convert implements runtime.ObjectConvertor.
func (asTheyAre) Convert(in, out, _ any) error {
	out.(*unstructured.Unstructured).Object = in.(*unstructured.Unstructured).DeepCopy().Object
	return nil
}

// ConvertToVersion implements runtime.ObjectConvertor.
func (c asTheyAre) ConvertToVersion(in runtime.Object, gv runtime.GroupVersioner) (runtime.Object, error) {
	out := in.(*unstructured.Unstructured).DeepCopy()
	if kind, ok := gv.KindForGroupVersionKinds([]schema.GroupVersionKind{out.GroupVersionKind()}); ok {
		out.SetGroupVersionKind(kind)
	}
	return out, nil
}

// ConvertFieldLabel implements runtime.ObjectConvertor.
func (asTheyAre) ConvertFieldLabel(_ schema.GroupVersionKind, label, value string) (string, string, error) {
	return label, value, nil
}

// Default implements runtime.ObjectDefaulter.
func (asTheyAre) Default(runtime.Object) {}

// New implements runtime.ObjectCreater.
func (c asTheyAre) New(kind schema.GroupVersionKind) (runtime.Object, error) {
	obj := &unstructured.Unstructured{Object: map[string]any{}}
	obj.SetGroupVersionKind(kind)
	return obj, nil
}
