package jsonvalue

import (
	"encoding"
	"encoding/json"
	"reflect"
)

// TextSize returns the length of the texts in a value, or more than the limit if they are longer: it
// stops counting then. Values of Go may share a text that their JSON repeats. Values that encode
// themselves have no texts, unless they are unstructured objects or have a field Raw: their contents
// may be guarded by a lock that only their methods know.
func TextSize(v any, limit int) int {
	e := extent{left: limit, values: mostVisited}
	e.take(reflect.ValueOf(v), 0)
	return limit - e.left
}

// Extensive reports whether a value has more than so many values and bytes of texts. It stops
// counting then.
func Extensive(v any, limit int) bool {
	e := extent{left: limit, each: 1, values: mostVisited}
	return !e.take(reflect.ValueOf(v), 0)
}

// mostVisited limits the values that are visited, as if their texts were too long: a value may
// contain itself more than once.
const mostVisited = 1 << 24

// extent counts the parts of a value that package json would encode.
type extent struct {
	left   int // the bytes and values until the limit
	each   int // what one value takes, besides its text
	values int // that may still be visited
}

// take subtracts the parts of the value. It returns false, and stops, when nothing is left. Levels
// deeper than those of JSON do not count: a value may contain itself.
func (e *extent) take(v reflect.Value, level int) bool {
	if e.left -= e.each; e.left < 0 || level > MaxDepth {
		return e.left >= 0
	}
	if e.values--; e.values < 0 {
		e.left = -1
		return false
	}
	if encodesItself(v) {
		return e.own(v, level)
	}
	switch v.Kind() {
	case reflect.String:
		e.left -= v.Len()
	case reflect.Pointer, reflect.Interface:
		return e.take(v.Elem(), level+1)
	case reflect.Slice, reflect.Array:
		return e.elements(v, level)
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if !e.take(each.Key(), level+1) || !e.take(each.Value(), level+1) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			field := v.Field(i)
			if !field.CanInterface() || v.Type().Field(i).Tag.Get("json") == "-" { // it has no JSON
				continue
			}
			if !e.take(field, level+1) {
				return false
			}
		}
	}
	return e.left >= 0
}

// own subtracts the known parts of a value that encodes itself.
func (e *extent) own(v reflect.Value, level int) bool {
	if v.Kind() == reflect.Pointer && v.IsNil() {
		return true
	}
	if v.CanAddr() {
		v = v.Addr()
	}
	if v.CanInterface() {
		if object, ok := v.Interface().(interface{ UnstructuredContent() map[string]any }); ok {
			return e.take(reflect.ValueOf(object.UnstructuredContent()), level+1)
		}
	}
	switch v = reflect.Indirect(v); v.Kind() {
	case reflect.Slice, reflect.String: // such as json.RawMessage
		e.left -= v.Len()
	case reflect.Struct: // such as a RawExtension
		if raw := v.FieldByName("Raw"); raw.IsValid() && raw.Kind() == reflect.Slice {
			e.left -= raw.Len()
		}
	}
	return e.left >= 0
}

var (
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
)

// encodesItself reports whether a method of the value encodes it.
func encodesItself(v reflect.Value) bool {
	switch v.Kind() {
	case reflect.Invalid, reflect.Interface:
		return false
	}
	t := v.Type()
	if t.PkgPath() == "" && (t.Kind() != reflect.Pointer || t.Elem().PkgPath() == "") {
		return false // as values of JSON: it has no methods
	}
	if v.CanAddr() {
		t = reflect.PointerTo(t)
	}
	return t.Implements(jsonMarshaler) || t.Implements(textMarshaler)
}

func (e *extent) elements(v reflect.Value, level int) bool {
	switch kind := v.Type().Elem().Kind(); {
	case kind == reflect.Uint8: // they are encoded as a text
		e.left -= v.Len()
	case kind < reflect.Array: // bools and numbers
		e.left -= e.each * v.Len()
	default:
		for i := range v.Len() {
			if !e.take(v.Index(i), level+1) {
				return false
			}
		}
	}
	return e.left >= 0
}
