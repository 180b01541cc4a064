//go:build !gopf_lean

package gopftest

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/cel/model"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/defaulting"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/listtype"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/objectmeta"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/schema/pruning"
	"k8s.io/apiextensions-apiserver/pkg/apiserver/validation"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/validation/field"
	celconfig "k8s.io/apiserver/pkg/apis/cel"
	"k8s.io/apiserver/pkg/cel/common"
)

// versionSchema applies the schema of one version of a custom resource, by the code of
// the real API server. nil accepts everything.
type versionSchema struct {
	structural *structuralschema.Structural
	whole      validation.SchemaValidator
	status     validation.SchemaValidator
	rules      *cel.Validator // nil means no CEL rules
}

func newVersionSchema(v *apiextensionsv1.CustomResourceValidation) (*versionSchema, error) {
	if v == nil || v.OpenAPIV3Schema == nil || isAnything(v.OpenAPIV3Schema) {
		return nil, nil
	}
	var props apiextensions.JSONSchemaProps
	if err := apiextensionsv1.Convert_v1_JSONSchemaProps_To_apiextensions_JSONSchemaProps(v.OpenAPIV3Schema, &props, nil); err != nil {
		return nil, err
	}
	s := &versionSchema{}
	var err error
	if s.structural, err = structuralschema.NewStructural(&props); err != nil {
		return nil, err
	}
	if err := defaulting.PruneDefaults(s.structural); err != nil {
		return nil, err
	}
	if s.whole, _, err = validation.NewSchemaValidator(&props); err != nil {
		return nil, err
	}
	status, ok := props.Properties["status"]
	if !ok {
		status = apiextensions.JSONSchemaProps{}
	}
	if s.status, _, err = validation.NewSchemaValidator(&status); err != nil {
		return nil, err
	}
	s.rules = cel.NewValidator(s.structural, true, celconfig.PerCallLimit)
	return s, nil
}

// unevaluated returns a warning about rules of the definition that this build ignores. It
// ignores none.
func unevaluated(*apiextensionsv1.CustomResourceDefinition) string { return "" }

// prepare prunes unknown fields and sets defaults.
func (s *versionSchema) prepare(obj *unstructured.Unstructured) {
	if s == nil {
		return
	}
	pruning.Prune(obj.Object, s.structural, true)
	defaulting.PruneNonNullableNullsWithoutDefaults(obj.Object, s.structural)
	defaulting.Default(obj.Object, s.structural)
}

// validate checks a new state. A nil old state means a new object.
func (s *versionSchema) validate(obj, old *unstructured.Unstructured, subresource string) field.ErrorList {
	if s == nil {
		return nil
	}
	ctx := context.Background() // only for tracing
	if old == nil {
		errs := validation.ValidateCustomResource(nil, obj.Object, s.whole)
		errs = append(errs, objectmeta.Validate(ctx, nil, obj.Object, s.structural, false)...)
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj.Object)...)
		return append(errs, s.checkRules(ctx, errs, obj.Object, nil)...)
	}
	// Unchanged values that were invalid before are accepted.
	both := common.NewCorrelatedObject(obj.Object, old.Object, &model.Structural{Structural: s.structural})
	var errs field.ErrorList
	if status, ok := obj.Object["status"]; subresource != "status" {
		errs = validation.ValidateCustomResourceUpdate(nil, obj.Object, old.Object, s.whole, validation.WithRatcheting(both))
	} else if ok {
		errs = validation.ValidateCustomResourceUpdate(field.NewPath("status"), status, old.Object["status"], s.status, validation.WithRatcheting(both.Key("status")))
	}
	errs = append(errs, objectmeta.Validate(ctx, nil, obj.Object, s.structural, false)...)
	if len(listtype.ValidateListSetsAndMaps(nil, s.structural, old.Object)) == 0 {
		errs = append(errs, listtype.ValidateListSetsAndMaps(nil, s.structural, obj.Object)...)
	}
	return append(errs, s.checkRules(ctx, errs, obj.Object, old.Object, cel.WithRatcheting(both))...)
}

// checkRules evaluates the CEL rules of the schema if there are no other errors.
func (s *versionSchema) checkRules(ctx context.Context, errs field.ErrorList, obj, old map[string]any, options ...cel.Option) field.ErrorList {
	if len(errs) > 0 || s.rules == nil {
		return nil
	}
	var before any
	if old != nil {
		before = old
	}
	errs, _ = s.rules.Validate(ctx, nil, s.structural, obj, before, celconfig.RuntimeCELCostBudget, options...)
	return errs
}
