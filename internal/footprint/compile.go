package footprint

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// compiler has the types that a type consists of. Types may contain themselves.
type compiler map[reflect.Type]*Type

var (
	jsonUnmarshaler = reflect.TypeFor[json.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
)

func (c compiler) compile(t reflect.Type) *Type {
	if known := c[t]; known != nil {
		return known
	}
	of := &Type{size: int(t.Size())}
	c[t] = of
	switch t {
	case reflect.TypeFor[resource.Quantity]():
		of.shape, of.zero = quantity, len(`"0"`)
		return of
	case reflect.TypeFor[metav1.Time](), reflect.TypeFor[metav1.MicroTime](), reflect.TypeFor[metav1.Duration](), reflect.TypeFor[time.Time]():
		of.shape, of.zero = moment, len(`"0001-01-01T00:00:00Z"`)
		return of
	}
	of.zero = len("null") // or 0, false and ""
	if t.Kind() != reflect.Pointer {
		of.custom = reflect.PointerTo(t).Implements(jsonUnmarshaler) || reflect.PointerTo(t).Implements(textUnmarshaler)
	}
	switch t.Kind() {
	case reflect.Pointer:
		of.shape, of.elem = pointer, c.compile(t.Elem())
	case reflect.Slice:
		of.shape, of.elem = list, c.compile(t.Elem())
	case reflect.Map:
		of.shape, of.elem = mapping, c.compile(t.Elem())
	case reflect.Struct:
		of.shape, of.fields = structure, map[string]*Type{}
		of.zero = len("{}") + c.add(of.fields, t, map[reflect.Type]bool{})
	case reflect.Array:
		of.shape, of.elem = list, c.compile(t.Elem()) // it counts twice, which is harmless
		of.zero = len("[]") + t.Len()*(of.elem.zero+len(","))
	case reflect.Interface:
		of.shape = dynamic
	}
	return of
}

// add adds the fields of a struct, with those of embedded structs. If two have the same
// name, the larger one counts: which of them is decoded does not matter then. seen has the
// structs that were added: two may embed pointers to each other. It returns the length of their
// JSON without values.
func (c compiler) add(fields map[string]*Type, t reflect.Type, seen map[reflect.Type]bool) (zero int) {
	if seen[t] {
		return 0
	}
	seen[t] = true
	for i := range t.NumField() {
		field := t.Field(i)
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		embedded := field.Type
		if embedded.Kind() == reflect.Pointer {
			embedded = embedded.Elem()
		}
		switch {
		case name == "-":
		case field.Anonymous && name == "" && embedded.Kind() == reflect.Struct:
			zero += c.add(fields, embedded, seen)
		case !field.IsExported():
		default:
			if name == "" {
				name = field.Name
			}
			of := c.compile(field.Type)
			if known := fields[name]; known == nil || known.size < of.size {
				fields[name] = of
			}
			if !omitted(field.Type, options) {
				zero += len(`"":,`) + len(name) + of.zero
			}
		}
	}
	return zero
}

// omitted reports whether a field with the options of its tag has no JSON if it is zero.
func omitted(t reflect.Type, options string) bool {
	for option := range strings.SplitSeq(options, ",") {
		if option == "omitzero" || option == "omitempty" && t.Kind() != reflect.Struct && t.Kind() != reflect.Array {
			return true
		}
	}
	return false
}

// widest returns the longest JSON that one JSON value can add somewhere in the type.
func widest(t *Type, seen map[*Type]bool) (most int) {
	if t == nil || seen[t] {
		return 0
	}
	seen[t] = true
	for at, links := t.elem, maxLinks; at != nil && links > 0; at, links = at.elem, links-1 {
		if most += at.zero; at.shape != pointer {
			break
		}
	}
	most = max(most, widest(t.elem, seen))
	for _, field := range t.fields {
		most = max(most, widest(field, seen))
	}
	return most
}

// worst returns the largest memory that one JSON value can add somewhere in the type.
func worst(t *Type, seen map[*Type]bool) int {
	if t == nil || seen[t] {
		return 0
	}
	seen[t] = true
	most := max(one(t, maxLinks), worst(t.elem, seen))
	for _, field := range t.fields {
		most = max(most, worst(field, seen))
	}
	return most
}

// has reports whether a value of the type can contain one of the shape.
func has(t *Type, of shape, seen map[*Type]bool) bool {
	if t == nil || seen[t] {
		return false
	}
	seen[t] = true
	for _, field := range t.fields {
		if has(field, of, seen) {
			return true
		}
	}
	return t.shape == of || has(t.elem, of, seen)
}

// maxLinks bounds chains of pointers, because a type can point to itself.
const maxLinks = 4

// one returns the memory that one JSON value can add to a value of the type, without the
// values in it.
func one(t *Type, links int) int {
	if links == 0 {
		return 0
	}
	if t.custom {
		plain := *t
		plain.custom = false
		return max(dense, one(&plain, links))
	}
	switch t.shape {
	case dynamic:
		return dense
	case pointer:
		return t.elem.size + one(t.elem, links-1)
	case list:
		return growth*t.elem.size + one(t.elem, links-1)
	case mapping:
		return 2*t.elem.size + entry + one(t.elem, links-1)
	}
	return 0
}
