package schema

import (
	"encoding"
	"encoding/json"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/jsonvalue"
)

// InObject looks for the path of a field in a Go type of Kubernetes objects. nil means
// that the objects have no Go type; then only their metadata is known. The metadata is
// that of all objects, even if the type declares another one.
func InObject(t reflect.Type, path jsonvalue.Path) Finding {
	switch {
	case len(path) == 0:
		return Finding{}
	case path[0] == "metadata":
		f := inType(reflect.TypeFor[metav1.ObjectMeta](), path[1:])
		f.At++
		return f
	case len(path) == 1 && (path[0] == "apiVersion" || path[0] == "kind"):
		return Finding{}
	case t == nil:
		return Finding{Verdict: Unknown}
	}
	return inType(t, path)
}

// inType looks for a path in the JSON of a Go type.
func inType(t reflect.Type, path jsonvalue.Path) Finding {
	for i, key := range path {
		if opaque(t) {
			return Finding{Verdict: Unknown}
		}
		for t.Kind() == reflect.Pointer {
			if t = t.Elem(); opaque(t) {
				return Finding{Verdict: Unknown}
			}
		}
		switch t.Kind() {
		case reflect.Map:
			t = t.Elem()
		case reflect.Struct:
			fields := jsonFields{}
			fields.add(t, nil)
			found, ok := fields.lookup(key)
			switch {
			case ok:
				t = found
			case fields.open:
				return Finding{Verdict: Unknown}
			default:
				return missing(i, fields.names())
			}
		case reflect.Slice, reflect.Array:
			return Finding{Verdict: Missing, At: i, Parent: "list"}
		default:
			return Finding{Verdict: Missing, At: i, Parent: "plain value"}
		}
	}
	return Finding{}
}

// opaque reports whether the JSON of a type cannot be told from its fields.
func opaque(t reflect.Type) bool {
	if t.Kind() == reflect.Interface {
		return true
	}
	pointer := t
	if t.Kind() != reflect.Pointer {
		pointer = reflect.PointerTo(t)
	}
	return slices.ContainsFunc([]reflect.Type{
		reflect.TypeFor[json.Marshaler](), reflect.TypeFor[json.Unmarshaler](),
		reflect.TypeFor[encoding.TextMarshaler](), reflect.TypeFor[encoding.TextUnmarshaler](),
	}, pointer.Implements)
}

// jsonFields has the JSON fields of a struct, including those of embedded structs.
type jsonFields struct {
	tagged   []jsonField
	untagged []jsonField // named by their Go names
	open     bool        // there may be any other field
}

type jsonField struct {
	name string
	t    reflect.Type
}

func (f *jsonFields) add(t reflect.Type, within []reflect.Type) {
	if slices.Contains(within, t) {
		return // a struct that embeds itself
	}
	within = append(within, t)
	for field := range t.Fields() {
		tag := field.Tag.Get("json")
		name, options, _ := strings.Cut(tag, ",")
		inline := name == "" && (field.Anonymous || slices.Contains(strings.Split(options, ","), "inline"))
		of := field.Type
		if of.Kind() == reflect.Pointer {
			of = of.Elem()
		}
		switch {
		case tag == "-", !field.IsExported() && !(field.Anonymous && of.Kind() == reflect.Struct):
		case inline && of.Kind() == reflect.Struct:
			f.add(of, within)
		case inline && (of.Kind() == reflect.Map || of.Kind() == reflect.Interface):
			f.open = true
		case name != "":
			f.tagged = append(f.tagged, jsonField{name, field.Type})
		default:
			f.untagged = append(f.untagged, jsonField{field.Name, field.Type})
		}
	}
}

// lookup returns the type of a field. A field without a tag matches in any case: its
// name in the cluster is not known from the type.
func (f *jsonFields) lookup(key string) (reflect.Type, bool) {
	for _, field := range f.tagged {
		if field.name == key {
			return field.t, true
		}
	}
	for _, field := range f.untagged {
		if strings.EqualFold(field.name, key) {
			return field.t, true
		}
	}
	return nil, false
}

func (f *jsonFields) names() []string {
	names := []string{}
	for _, field := range slices.Concat(f.tagged, f.untagged) {
		names = append(names, field.name)
	}
	return names
}
