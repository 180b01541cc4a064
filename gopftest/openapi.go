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
// Schemas of custom resources are taken from their definitions, those of well-known kinds
// from their Go types. A kind that is defined by name only accepts all fields. Paths have
// only what clients look for: the kind, and the parameters of writes.
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
	paths := map[string]any{}
	for _, res := range x.kinds.all() {
		if v, ok := res.version(gv.Version); ok && res.Group == gv.Group {
			schemas.addKind(res, v)
			res.addPaths(paths, v)
		}
	}
	if len(schemas) == 0 {
		http.NotFound(x.w, x.r)
		return
	}
	x.write(http.StatusOK, encode(map[string]any{
		"openapi": "3.0.0", "info": map[string]any{"title": "Kubernetes", "version": x.version().GitVersion},
		"paths": paths, "components": map[string]any{"schemas": schemas},
	}))
}

// addPaths adds the paths of a resource to a document.
func (r *resource) addPaths(paths map[string]any, v *servedVersion) {
	path := "/apis/" + r.Group + "/" + v.name + "/"
	if r.Group == "" {
		path = "/api/" + v.name + "/"
	}
	if r.Namespaced {
		path += "namespaces/{namespace}/"
	}
	kind := map[string]any{"group": r.Group, "version": v.name, "kind": r.Kind.Kind}
	operation := func(action string, parameters ...string) map[string]any {
		list := []any{}
		for _, name := range parameters {
			list = append(list, map[string]any{"name": name, "in": "query", "schema": map[string]any{"type": "string"}})
		}
		return map[string]any{"x-kubernetes-action": action, "x-kubernetes-group-version-kind": kind, "parameters": list,
			"responses": map[string]any{"200": map[string]any{"description": "OK"}}}
	}
	paths[path+r.Plural] = map[string]any{
		"get": operation("list", "fieldSelector", "labelSelector", "limit", "watch"), "post": operation("post", "dryRun", "fieldManager", "fieldValidation"),
	}
	paths[path+r.Plural+"/{name}"] = map[string]any{
		"get": operation("get"), "delete": operation("delete", "dryRun", "propagationPolicy"),
		"put": operation("put", "dryRun", "fieldManager", "fieldValidation"), "patch": operation("patch", "dryRun", "fieldManager", "fieldValidation", "force"),
	}
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
			if text := described(t)[""]; text != "" {
				s[name]["description"] = text
			}
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
			schema := mergeRules(s.ofType(f.Type), f.Tag)
			if text := described(t)[name]; text != "" {
				schema["description"] = text
			}
			properties[name] = schema
		case f.Anonymous && f.Type.Kind() == reflect.Struct:
			s.addFields(properties, f.Type)
		}
	}
}

// described returns the documentation of the fields of a type, and of the type itself under
// the empty name.
func described(t reflect.Type) map[string]string {
	if documented, ok := reflect.New(t).Interface().(interface{ SwaggerDoc() map[string]string }); ok {
		return documented.SwaggerDoc()
	}
	return nil
}

// mergeRules adds to the schema of a field how clients and the server merge it, by the tags of
// its Go type.
func mergeRules(schema map[string]any, tag reflect.StructTag) map[string]any {
	strategy, key := tag.Get("patchStrategy"), tag.Get("patchMergeKey")
	if strategy == "" {
		return schema
	}
	schema["x-kubernetes-patch-strategy"] = strategy
	switch {
	case key != "":
		schema["x-kubernetes-patch-merge-key"] = key
		schema["x-kubernetes-list-type"] = "map"
		schema["x-kubernetes-list-map-keys"] = []any{key}
	case schema["type"] == "array" && strings.Contains(strategy, "merge"):
		schema["x-kubernetes-list-type"] = "set"
	}
	return schema
}

// componentName returns the name of a type in documents, such as io.k8s.api.apps.v1.Deployment.
func componentName(t reflect.Type) string {
	host, rest, _ := strings.Cut(t.PkgPath(), "/")
	parts := strings.Split(host, ".")
	slices.Reverse(parts)
	return strings.Join(append(parts, strings.Split(rest, "/")...), ".") + "." + t.Name()
}
