package logs

import "reflect"

// manyParts is the size of a value, in elements and bytes of texts, above which only the start of
// its JSON is encoded. Handlers log parts of objects, and clients of the cluster choose their size:
// the JSON of a list of 250,000 structs took 312 MB for a line of 8 KiB.
const manyParts = 64 << 10

// hasManyParts reports whether a value is large. It stops counting then.
func hasManyParts(v any) bool {
	left := manyParts
	return exhausts(reflect.ValueOf(v), &left, 0)
}

// exhausts subtracts the size of the value from left, and reports whether nothing is left. Deeper
// levels than those of JSON do not count: a value may contain itself.
func exhausts(v reflect.Value, left *int, level int) bool {
	const mostLevels = 1000
	if *left--; *left < 0 || level > mostLevels {
		return *left < 0
	}
	switch v.Kind() {
	case reflect.String:
		*left -= v.Len()
	case reflect.Pointer, reflect.Interface:
		return exhausts(v.Elem(), left, level+1)
	case reflect.Slice, reflect.Array:
		if v.Type().Elem().Size() <= 1 || v.Len() > *left {
			*left -= v.Len()
			break
		}
		for i := range v.Len() {
			if exhausts(v.Index(i), left, level+1) {
				return true
			}
		}
	case reflect.Map:
		for each := v.MapRange(); each.Next(); {
			if exhausts(each.Key(), left, level+1) || exhausts(each.Value(), left, level+1) {
				return true
			}
		}
	case reflect.Struct:
		for i := range v.NumField() {
			if exhausts(v.Field(i), left, level+1) {
				return true
			}
		}
	}
	return *left < 0
}
