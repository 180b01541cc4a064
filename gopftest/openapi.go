package gopftest

import (
	"encoding/json"
	"net/http"
	"reflect"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// serveOpenAPI serves /openapi/v3, and below it one document for each version of a group.
// Documents have only the schemas of the kinds, and schemas have no descriptions. Those of
// custom resources are taken from their definitions, those of well-known kinds from their
// Go types. A kind that is defined by name only accepts all fields.
func (x *exchange) serveOpenAPI(parts []string) {
	switch {
	case !x.has(OpenAPI):
		http.NotFound(x.w, x.r)
	case len(parts) == 0:
		x.write(http.StatusOK, encode(x.openAPIIndex()))
	case len(parts) == 2 && parts[0] == "api":
		x.serveSchemas(schema.GroupVersion{Version: parts[1]})
	case len(parts) == 3 && parts[0] == "apis":
		x.serveSchemas(schema.GroupVersion{Group: parts[1], Version: parts[2]})
	default:
		http.NotFound(x.w, x.r)
	}
}

// openAPIIndex returns the list of documents.
func (c *Cluster) openAPIIndex() map[string]any {
	documents := map[string]any{}
	for _, res := range c.kinds.all() {
		for _, v := range res.versions {
			name := "apis/" + res.Group + "/" + v.name
			if res.Group == "" {
				name = "api/" + v.name
			}
			documents[name] = map[string]any{"serverRelativeURL": "/openapi/v3/" + name}
		}
	}
	return map[string]any{"paths": documents}
}

func (x *exchange) serveSchemas(gv schema.GroupVersion) {
	schemas := openAPISchemas{}
	for _, res := range x.kinds.all() {
		if v, ok := res.version(gv.Version); ok && res.Group == gv.Group {
			schemas.addKind(res, v)
		}
	}
	if len(schemas) == 0 {
		http.NotFound(x.w, x.r)
		return
	}
	x.write(http.StatusOK, encode(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": x.version().GitVersion},
		"paths": map[string]any{}, "components": map[string]any{"schemas": schemas},
	}))
}

// openAPISchemas has the schemas of a document by name.
type openAPISchemas map[string]map[string]any

func (s openAPISchemas) addKind(res *resource, v *servedVersion) {
	group := strings.Split(res.Group, ".")
	slices.Reverse(group)
	name := strings.Join(append(group, v.name, res.Kind.Kind), ".")
	typed, err := (&scope{resource: res, version: v}).newType()
	switch {
	case v.published != nil:
		s[name] = s.ofDefinition(v.published)
	case err == nil:
		t := reflect.TypeOf(typed).Elem()
		name = componentName(t)
		s.ofType(t)
	default: // a version that the Go client does not know
		s[name] = map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	}
	s[name]["x-kubernetes-group-version-kind"] = []any{map[string]any{"group": res.Group, "version": v.name, "kind": res.Kind.Kind}}
}

// ofDefinition returns the published schema of a custom resource: that of its definition,
// with the fields that every object has.
func (s openAPISchemas) ofDefinition(v *apiextensionsv1.JSONSchemaProps) map[string]any {
	var published map[string]any
	if err := json.Unmarshal(encode(v), &published); err != nil {
		panic("gopftest: " + err.Error()) // it was decoded from JSON
	}
	properties, _ := published["properties"].(map[string]any)
	if properties == nil {
		properties = map[string]any{}
		published["properties"] = properties
	}
	properties["apiVersion"] = map[string]any{"type": "string"}
	properties["kind"] = map[string]any{"type": "string"}
	properties["metadata"] = s.ofType(reflect.TypeFor[metav1.ObjectMeta]())
	return published
}

// ofType returns the schema of a Go type. Structs are added to the document, and the
// schema refers to them.
func (s openAPISchemas) ofType(t reflect.Type) map[string]any {
	if t.Kind() == reflect.Pointer {
		return s.ofType(t.Elem())
	}
	if _, custom := reflect.New(t).Interface().(json.Marshaler); custom || t.Kind() == reflect.Interface {
		return map[string]any{} // quantities, times, raw JSON
	}
	switch t.Kind() {
	case reflect.Struct:
		name := componentName(t)
		if _, done := s[name]; !done {
			properties := map[string]any{}
			s[name] = map[string]any{"type": "object", "properties": properties} // before its fields: types can be recursive
			s.addFields(properties, t)
		}
		return map[string]any{"$ref": "#/components/schemas/" + name}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": s.ofType(t.Elem())}
	case reflect.Slice, reflect.Array:
		if t.Elem().Kind() == reflect.Uint8 {
			return map[string]any{"type": "string", "format": "byte"}
		}
		return map[string]any{"type": "array", "items": s.ofType(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	}
	return map[string]any{"type": "integer"}
}

func (s openAPISchemas) addFields(properties map[string]any, t reflect.Type) {
	for f := range t.Fields() {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case name != "" && name != "-":
			properties[name] = s.ofType(f.Type)
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.addFields(properties, f.Type)
		}
	}
}

// componentName returns the name of a type in documents, such as io.k8s.api.apps.v1.Deployment.
func componentName(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, strings.Split(rest, "/")...), ".") + "." + t.Name()
}
