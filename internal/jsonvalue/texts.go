package jsonvalue

import "reflect"

// TextSize returns the length of the texts in a value, or more than the limit if they are longer: it
// stops counting then. Values of Go may share a text that their JSON repeats.
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
			if field := v.Field(i); field.CanInterface() && !e.take(field, level+1) { // others have no JSON
				return false
			}
		}
	}
	return e.left >= 0
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
