package patch

import (
	"reflect"

	"gopf.dev/gopf/diff"
)

// Rule says which differences between a write and the object after it come from the
// API server.
type Rule int

// The rules, from strict to lenient. Under all of them, the object may have additional
// fields, and a null of the write may be absent.
const (
	Exact     Rule = iota // lists must be equal
	Defaulted             // the server may add fields to list items
	Created               // like Defaulted, and the server may omit empty values
)

// Landed reports whether an object shows the effect of a write: a merge patch, the
// fields of an apply, or a new object. Both are decoded JSON. Values that the server
// writes in another form are not recognized.
func Landed(want, has any, rule Rule) bool {
	switch want := want.(type) {
	case map[string]any:
		fields, ok := has.(map[string]any)
		if !ok {
			return has == nil && omitted(want, rule)
		}
		for key, value := range want {
			if !Landed(value, fields[key], rule) {
				return false
			}
		}
		return true
	case []any:
		if rule == Exact {
			return diff.Equal(want, has)
		}
		items, ok := has.([]any)
		if !ok {
			return has == nil && omitted(want, rule)
		}
		if len(items) != len(want) {
			return false
		}
		for i, value := range want {
			if !Landed(value, items[i], rule) {
				return false
			}
		}
		return true
	}
	return has == nil && omitted(want, rule) || diff.Equal(want, has)
}

// omitted reports whether an object without the value shows the effect of writing it.
func omitted(v any, rule Rule) bool {
	if rule == Created {
		return isEmpty(v)
	}
	return OnlyRemoves(v)
}

// OnlyRemoves reports whether a part of a merge patch only removes fields. The server
// may drop a map with its last key, so such a part has an effect on an absent map as
// well. An empty map is a value, so it does not count.
func OnlyRemoves(v any) bool {
	fields, ok := v.(map[string]any)
	if !ok || len(fields) == 0 {
		return v == nil
	}
	for _, inner := range fields {
		if !OnlyRemoves(inner) {
			return false
		}
	}
	return true
}

// isEmpty reports whether servers omit the value from new objects.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		for _, inner := range v {
			if !isEmpty(inner) {
				return false
			}
		}
		return true
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}
