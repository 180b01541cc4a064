package gopftest

import (
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// throughType converts an object of a well-known kind to its Go type and back, as the
// real API server does: this drops unknown fields and rejects wrong types. It sets
// defaults only for secrets and custom resource definitions.
func (s *scope) throughType(obj *unstructured.Unstructured) error {
	typed, err := s.newType()
	if err != nil {
		return nil //nolint:nilerr // a version that the Go client does not know
	}
	if err := utiljson.Unmarshal(encode(obj.Object), typed); err != nil {
		return apierrors.NewBadRequest(obj.GetKind() + " in version \"" + s.version.name + "\" cannot be handled as a " +
			s.resource.Kind.Kind + ": " + err.Error())
	}
	if crd, ok := typed.(*apiextensionsv1.CustomResourceDefinition); ok {
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd)
	}
	if secret, ok := typed.(*corev1.Secret); ok {
		takePlainText(secret)
	}
	obj.Object = mustUnstructured(typed).Object
	s.dropMissing(obj)
	return nil
}

// takePlainText moves the stringData of a secret to its data.
func takePlainText(secret *corev1.Secret) {
	if len(secret.StringData) > 0 && secret.Data == nil {
		secret.Data = map[string][]byte{}
	}
	for key, text := range secret.StringData {
		secret.Data[key] = []byte(text)
	}
	secret.StringData = nil
	if secret.Type == "" {
		secret.Type = corev1.SecretTypeOpaque
	}
}

func (s *scope) newType() (runtime.Object, error) {
	if s.resource.groupResource() == crdResource() {
		return &apiextensionsv1.CustomResourceDefinition{}, nil
	}
	return knownTypes().New(s.groupKind().WithVersion(s.resource.Version))
}

// validateDefinition validates a custom resource definition.
func (s *scope) validateDefinition(obj, old *unstructured.Unstructured) field.ErrorList {
	if s.resource.groupResource() != crdResource() || s.subresource != "" {
		return nil
	}
	if warning := unevaluated(decodeCRD(obj)); warning != "" && s.warn != nil {
		s.warn(warning)
	}
	if old == nil {
		content := map[string]any{"name": obj.GetName(), "annotations": obj.GetAnnotations(), "spec": obj.Object["spec"]}
		if parsedSchemas.isValid(content) {
			return nil
		}
		errs := definitionErrors(decodeCRD(obj), nil)
		if len(errs) == 0 {
			parsedSchemas.setValid(content)
		}
		return errs
	}
	return definitionErrors(decodeCRD(obj), decodeCRD(old))
}

// prepareBuiltin sets the fields that clients of well-known kinds rely on.
func (s *scope) prepareBuiltin(obj *unstructured.Unstructured) {
	switch s.resource.groupResource().String() {
	case "namespaces":
		labels := obj.GetLabels()
		if labels == nil {
			labels = map[string]string{}
		}
		labels["kubernetes.io/metadata.name"] = obj.GetName()
		obj.SetLabels(labels)
		obj.Object["spec"] = map[string]any{"finalizers": []any{"kubernetes"}}
		obj.Object["status"] = map[string]any{"phase": "Active"}
	case "pods":
		obj.Object["status"] = map[string]any{"phase": "Pending"}
	case crdResource().String():
		crd := decodeCRD(obj)
		crd.Status = apiextensionsv1.CustomResourceDefinitionStatus{}
		apiextensionsv1.SetDefaults_CustomResourceDefinition(crd) // sets the stored versions
		obj.Object = mustUnstructured(crd).Object
	}
}
