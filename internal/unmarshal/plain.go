package unmarshal

import (
	"encoding"
	v1 "encoding/json"
	"reflect"
	"strings"
	"sync"
	"time"

	"github.com/go-json-experiment/json"
)

// plain has the result of [isPlain] for each type. It is shared, as the cache of encoding/json
// is: the result depends on nothing else, and a program has few types.
var plain sync.Map

// isPlain reports whether both decoders have the same result for the type. It is false in case
// of doubt.
func isPlain(t reflect.Type) bool {
	if known, ok := plain.Load(t); ok {
		return known.(bool)
	}
	result := check(t, map[reflect.Type]bool{})
	plain.Store(t, result)
	return result
}

var (
	jsonUnmarshaler = reflect.TypeFor[v1.Unmarshaler]()
	textUnmarshaler = reflect.TypeFor[encoding.TextUnmarshaler]()
	fromUnmarshaler = reflect.TypeFor[json.UnmarshalerFrom]()
)

// check is isPlain for a type that is a part of another one. seen has the types that are
// checked already, because types may contain themselves.
func check(t reflect.Type, seen map[reflect.Type]bool) bool {
	if seen[t] {
		return true
	}
	seen[t] = true
	self := reflect.PointerTo(t)
	switch {
	case self.Implements(fromUnmarshaler), t == reflect.TypeFor[v1.Number](), t == reflect.TypeFor[time.Duration]():
		return false
	case t.Kind() != reflect.Pointer && (self.Implements(jsonUnmarshaler) || self.Implements(textUnmarshaler)):
		return true // it decodes itself
	}
	switch t.Kind() {
	case reflect.Bool, reflect.String, reflect.Float32, reflect.Float64,
		reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64,
		reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return true
	case reflect.Pointer:
		return check(t.Elem(), seen)
	case reflect.Slice:
		bytes := t.Elem().Kind() == reflect.Uint8
		return (!bytes || t.Elem() == reflect.TypeFor[byte]()) && check(t.Elem(), seen)
	case reflect.Map:
		key := reflect.PointerTo(t.Key())
		return t.Key().Kind() == reflect.String && !key.Implements(jsonUnmarshaler) && !key.Implements(textUnmarshaler) &&
			!key.Implements(fromUnmarshaler) && check(t.Elem(), seen)
	case reflect.Struct:
		for i := range t.NumField() {
			if field := t.Field(i); !checkTag(field) || !ignored(field) && !check(field.Type, seen) {
				return false
			}
		}
		return true
	}
	return false
}

// ignored reports whether a field is not decoded.
func ignored(field reflect.StructField) bool {
	return field.Tag.Get("json") == "-" || !field.IsExported() && !field.Anonymous
}

// checkTag reports whether both decoders understand the tag of a field in the same way. The
// faster one knows more options, and quotes.
func checkTag(field reflect.StructField) bool {
	tag, tagged := field.Tag.Lookup("json")
	if !tagged || tag == "-" {
		return true
	}
	if !field.IsExported() {
		return false
	}
	name, options, _ := strings.Cut(tag, ",")
	for _, c := range name {
		if !strings.ContainsRune("-_./$", c) && (c < '0' || c > '9') && (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') {
			return false
		}
	}
	for option := range strings.SplitSeq(options, ",") {
		switch option {
		case "", "omitempty", "omitzero":
		case "inline":
			if !field.Anonymous {
				return false
			}
		default:
			return false
		}
	}
	return true
}
