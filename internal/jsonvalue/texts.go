package jsonvalue

import "reflect"

// TextSize returns the length of the texts in a value, or more than the limit if they are longer: it
// stops counting then. Values of Go may share a text that their JSON repeats.
func TextSize(v any, limit int) int {
	left := limit
	takeTexts(reflect.ValueOf(v), &left, 0)
	return limit - left
}

// takeTexts subtracts the lengths of texts from left. ok is false if it is negative. Deeper levels
// than those of JSON do not count: a value may contain itself.
func takeTexts(v reflect.Value, left *int, level int) (ok bool) {
	if level > MaxDepth {
		return true
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Pointer, reflect.Interface:
		return takeTexts(v.Elem(), left, level+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			*left -= v.Len()
			break
		}
		if !hasTexts(v.Type().Elem()) {
			break
		}
		for i := range v.Len() {
			if !takeTexts(v.Index(i), left, level+1) {
				return false
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if !takeTexts(each.Key(), left, level+1) || !takeTexts(each.Value(), left, level+1) {
				return false
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if !takeTexts(v.Field(i), left, level+1) {
				return false
			}
		}
	}
	return *left >= 0
}

// hasTexts reports whether values of a type may contain texts.
func hasTexts(t reflect.Type) bool { return t.Kind() == reflect.String || t.Kind() >= reflect.Array }
