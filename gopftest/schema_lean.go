//go:build gopf_lean

package gopftest

import (
	"strings"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/validation/field"
	openapierrors "k8s.io/kube-openapi/pkg/validation/errors"
	"k8s.io/kube-openapi/pkg/validation/spec"
	"k8s.io/kube-openapi/pkg/validation/strfmt"
	"k8s.io/kube-openapi/pkg/validation/validate"
)

// versionSchema applies the schema of one version of a custom resource. It evaluates no CEL
// rules, because the packages for them take a minute to compile. nil accepts everything.
type versionSchema struct {
	structural *structuralschema.Structural
	whole      *validate.SchemaValidator
	status     *validate.SchemaValidator // nil means no schema of the status
}

func structuralOf(v *apiextensionsv1.JSONSchemaProps) (*structuralschema.Structural, error) {
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v, &props, nil); err != nil {
		return nil, err
	}
	return structuralschema.NewStructural(&props)
}

func newVersionSchema(v *apiextensionsv1.CustomResourceValidation) (*versionSchema, error) {
	if v == nil || v.OpenAPIV3Schema == nil || isAnything(v.OpenAPIV3Schema) {
		return nil, nil
	}
	s := &versionSchema{}
	var err error
	if s.structural, err = structuralOf(v.OpenAPIV3Schema); err != nil {
		return nil, err
	}
	s.whole = validatorOf(s.structural)
	if status, ok := s.structural.Properties["status"]; ok {
		s.status = validatorOf(&status)
	}
	return s, nil
}

func validatorOf(s *structuralschema.Structural) *validate.SchemaValidator {
	return validate.NewSchemaValidator(checkable(s.ToKubeOpenAPI()), nil, "", strfmt.Default)
}

// checkable prepares a schema for the validator, which does not know the extensions of
// Kubernetes: a value may be a number or a string, and formats for documentation only.
func checkable(s *spec.Schema) *spec.Schema {
	if yes, _ := s.Extensions.GetBool("x-kubernetes-int-or-string"); yes {
		s.Type = spec.StringOrArray{"integer", "string"}
	}
	if s.Items != nil && s.Items.Schema != nil {
		checkable(s.Items.Schema)
	}
	if s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil {
		checkable(s.AdditionalProperties.Schema)
	}
	for name, p := range s.Properties {
		s.Properties[name] = *checkable(&p)
	}
	return s
}

// prepare prunes unknown fields and sets defaults.
func (s *versionSchema) prepare(obj *unstructured.Unstructured) {
	if s == nil {
		return
	}
	pruning.Prune(obj.Object, s.structural, true)
	setDefaults(obj.Object, s.structural)
}

// setDefaults sets the defaults of missing fields, and of fields that are null but must not
// be. Such fields without a default are removed.
func setDefaults(value any, s *structuralschema.Structural) {
	switch value := value.(type) {
	case map[string]any:
		for name, p := range s.Properties {
			field, present := value[name]
			if present && (field != nil || p.Nullable) {
				continue
			}
			if p.Default.Object != nil {
				value[name] = runtime.DeepCopyJSONValue(p.Default.Object)
			} else if present {
				delete(value, name)
			}
		}
		for name, field := range value {
			if p, ok := s.Properties[name]; ok {
				setDefaults(field, &p)
			} else if s.AdditionalProperties != nil && s.AdditionalProperties.Structural != nil {
				setDefaults(field, s.AdditionalProperties.Structural)
			}
		}
	case []any:
		if s.Items == nil {
			return
		}
		for _, item := range value {
			setDefaults(item, s.Items)
		}
	}
}

// validate checks a new state. A nil old state means a new object. An update may keep
// values that were invalid before.
func (s *versionSchema) validate(obj, old *unstructured.Unstructured, subresource string) field.ErrorList {
	if s == nil {
		return nil
	}
	errs := s.errors(obj, subresource)
	if len(errs) == 0 || old == nil {
		return errs
	}
	known := map[string]bool{}
	for _, e := range s.errors(old, subresource) {
		known[e.Error()] = true
	}
	var fresh field.ErrorList
	for _, e := range errs {
		if !known[e.Error()] {
			fresh = append(fresh, e)
		}
	}
	return fresh
}

func (s *versionSchema) errors(obj *unstructured.Unstructured, subresource string) field.ErrorList {
	if subresource != "status" {
		errs := schemaFindings(nil, s.whole.Validate(obj.Object).Errors)
		return append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj.Object)...)
	}
	status, ok := obj.Object["status"]
	if !ok || s.status == nil {
		return nil
	}
	return schemaFindings(field.NewPath("status"), s.status.Validate(status).Errors)
}

// schemaFindings converts the errors of the validator.
func schemaFindings(at *field.Path, found []error) field.ErrorList {
	var errs field.ErrorList
	for _, err := range found {
		path := at
		failed, ok := err.(*openapierrors.Validation) //nolint:errorlint // the validator returns it unwrapped
		if !ok {
			errs = append(errs, field.Invalid(at, "", err.Error()))
			continue
		}
		if name := strings.Trim(failed.Name, "."); name != "" {
			path = at.Child(name)
		}
		detail := strings.TrimSpace(strings.TrimPrefix(err.Error(), failed.Name))
		switch failed.Code() {
		case openapierrors.RequiredFailCode:
			errs = append(errs, field.Required(path, ""))
		case openapierrors.InvalidTypeCode:
			errs = append(errs, field.TypeInvalid(path, failed.Value, detail))
		default:
			errs = append(errs, field.Invalid(path, failed.Value, detail))
		}
	}
	return errs
}

// unevaluated returns a warning about rules of the definition that this build ignores.
func unevaluated(crd *apiextensionsv1.CustomResourceDefinition) string {
	for _, v := range crd.Spec.Versions {
		if v.Schema != nil && v.Schema.OpenAPIV3Schema != nil && hasRules(v.Schema.OpenAPIV3Schema) {
			return "the in-memory server does not evaluate x-kubernetes-validations; use the real control plane to test them"
		}
	}
	return ""
}

func hasRules(s *apiextensionsv1.JSONSchemaProps) bool {
	if len(s.XValidations) > 0 {
		return true
	}
	for _, p := range s.Properties {
		if hasRules(&p) {
			return true
		}
	}
	return s.Items != nil && s.Items.Schema != nil && hasRules(s.Items.Schema) ||
		s.AdditionalProperties != nil && s.AdditionalProperties.Schema != nil && hasRules(s.AdditionalProperties.Schema)
}
