//go:build !gopf_lean

package gopftest

import (
	"context"

	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/validation"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// definitionErrors validates a custom resource definition by the code of the real API
// server. A nil old definition means a new one.
func definitionErrors(crd, old *apiextensionsv1.CustomResourceDefinition) field.ErrorList {
	internal := func(in *apiextensionsv1.CustomResourceDefinition) *apiextensions.CustomResourceDefinition {
		out := &apiextensions.CustomResourceDefinition{}
		if err := apiextensionsv1.Convert_v1_CustomResourceDefinition_To_apiextensions_CustomResourceDefinition(in, out, nil); err != nil {
			panic("gopftest: convert a custom resource definition: " + err.Error()) // it was decoded before
		}
		return out
	}
	if old == nil {
		return validation.ValidateCustomResourceDefinition(context.Background(), internal(crd))
	}
	return validation.ValidateCustomResourceDefinitionUpdate(context.Background(), internal(crd), internal(old))
}
