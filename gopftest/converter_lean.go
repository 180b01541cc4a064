//go:build gopf_lean

package gopftest

import (
	"encoding/json"
	"reflect"

	"k8s.io/apimachinery/pkg/util/managedfields"
	"k8s.io/kube-openapi/pkg/validation/spec"
)

// builtinTypes returns the merge rules of a well-known kind, derived from the tags of its Go
// type. The published rules would add fifty packages to compile. They differ in lists with
// several keys, such as the ports of containers.
func builtinTypes(s *scope) (managedfields.TypeConverter, error) {
	typed, err := s.newType()
	if err != nil {
		return managedfields.NewDeducedTypeConverter(), nil //nolint:nilerr // a version that the Go client does not know
	}
	schemas := openAPISchemas{}
	schemas.addKind(s.resource, s.version)
	root := componentName(reflect.TypeOf(typed).Elem())
	models := map[string]*spec.Schema{}
	for name, schema := range schemas {
		model := &spec.Schema{}
		if err := json.Unmarshal(encode(schema), model); err != nil {
			return nil, err
		}
		if name != root {
			delete(model.Extensions, "x-kubernetes-group-version-kind")
		}
		models[name] = model
	}
	return managedfields.NewTypeConverter(models, false)
}
