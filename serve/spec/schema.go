package spec

import (
	"reflect"
	"strings"
)

// Schema returns the JSON schema of the file, for editors. It is derived from the types of
// this package.
func Schema() map[string]any {
	s := schemaOf(reflect.TypeFor[Operator]())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Operator of gopf serve"
	properties := s["properties"].(map[string]any)
	properties["apiVersion"].(map[string]any)["const"] = APIVersion
	properties["kind"].(map[string]any)["const"] = Kind
	s["required"] = []string{"apiVersion", "kind", "metadata", "resources"}
	return s
}

func schemaOf(t reflect.Type) map[string]any {
	switch {
	case t == nodeType, t.Kind() == reflect.Interface:
		return map[string]any{}
	case t == durationType:
		return map[string]any{"type": "string", "pattern": `^0$|^([0-9]+(\.[0-9]+)?(ns|us|ms|s|m|h))+$`}
	}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem())
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": "object", "additionalProperties": schemaOf(t.Elem())}
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Struct:
		properties := map[string]any{}
		for _, f := range reflect.VisibleFields(t) {
			tag, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if tag == "" || tag == "-" || f.Anonymous {
				continue
			}
			one := schemaOf(f.Type)
			one["description"] = f.Tag.Get("doc")
			properties[tag] = one
		}
		return map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	}
	return map[string]any{"type": "integer"}
}
