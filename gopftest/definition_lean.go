//go:build gopf_lean

package gopftest

import (
	"fmt"
	"reflect"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	structuralschema "k8s.io/apiextensions-apiserver/pkg/apiserver/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definitionErrors checks the parts of a custom resource definition that the server relies
// on: names, scope, versions and schemas. A nil old definition means a new one.
func definitionErrors(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	var errs field.ErrorList
	spec, at := crd.Spec, field.NewPath("spec")
	for path, value := range map[string]string{"group": spec.Group, "names.plural": spec.Names.Plural, "names.kind": spec.Names.Kind} {
		if value == "" {
			errs = append(errs, field.Required(at.Child(path), ""))
		}
	}
	if name := spec.Names.Plural + "." + spec.Group; crd.Name != name {
		errs = append(errs, field.Invalid(field.NewPath("metadata", "name"), crd.Name,
			fmt.Sprintf("must be spec.names.plural+\".\"+spec.group, which is %q", name)))
	}
	if scopes := []apiextensionsv1.ResourceScope{apiextensionsv1.ClusterScoped, apiextensionsv1.NamespaceScoped}; !slices.Contains(scopes, spec.Scope) {
		errs = append(errs, field.NotSupported(at.Child("scope"), spec.Scope, scopes))
	}
	stored := 0
	for i, v := range spec.Versions {
		if v.Storage {
			stored++
		}
		errs = append(errs, schemaErrors(at.Child("versions").Index(i).Child("schema", "openAPIV3Schema"), v.Schema)...)
	}
	if stored != 1 {
		errs = append(errs, field.Invalid(at.Child("versions"), stored, "must have exactly one version marked as storage version"))
	}
	if old != nil && (old.Spec.Group != spec.Group || old.Spec.Scope != spec.Scope || !reflect.DeepEqual(old.Spec.Names.Kind, spec.Names.Kind)) {
		errs = append(errs, field.Invalid(at, spec.Names.Kind, "group, scope and kind are immutable"))
	}
	return errs
}

// schemaErrors checks that the schema is structural, as the real API server requires.
func schemaErrors(at *field.Path, v *apiextensionsv1.CustomResourceValidation) field.ErrorList {
	if v == nil || v.OpenAPIV3Schema == nil {
		return field.ErrorList{field.Required(at, "schemas are required")}
	}
	structural, err := structuralOf(v.OpenAPIV3Schema)
	if err != nil {
		return field.ErrorList{field.Invalid(at, "", err.Error())}
	}
	return structuralschema.ValidateStructural(at, structural)
}
