package objects

import (
	"maps"
	"reflect"
	"slices"

	"gopf.dev/gopf/diff"
)

// has tells whether an object has all that was asked for, both as decoded JSON.
// The predicate tells what need not be there. What the server writes in another
// way than it was sent is not recognised.
func has(object, asked any, needless func(any) bool) bool {
	switch wanted := asked.(type) {
	case map[string]any:
		if fields, ok := object.(map[string]any); ok {
			for key, value := range wanted {
				if !has(fields[key], value, needless) {
					return false
				}
			}
			return true
		}
	case []any:
		if items, ok := object.([]any); ok {
			return slices.EqualFunc(items, wanted, func(item, value any) bool { return has(item, value, needless) })
		}
	}
	return object == nil && needless(asked) || same(object, asked)
}

// isEmpty tells what servers leave out of objects.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return !isEmpty(inner) })
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// isNull tells what patches take out of objects.
func isNull(v any) bool {
	if fields, ok := v.(map[string]any); ok && len(fields) > 0 {
		return !slices.ContainsFunc(slices.Collect(maps.Values(fields)), func(inner any) bool { return !isNull(inner) })
	}
	return v == nil
}

// same reports whether two scalars are equal: 1 and 1.0 are the same to JSON. It
// is false for maps and lists.
func same(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	return diff.Equal(a, b)
}

// chosen are the fields that are up to whoever writes: not those by which the
// server tells versions of objects from one another.
func chosen(fields map[string]any) map[string]any {
	metadata, ok := fields["metadata"].(map[string]any)
	if !ok {
		return fields
	}
	metadata = maps.Clone(metadata)
	for _, key := range []string{"resourceVersion", "uid", "generation", "creationTimestamp", "deletionTimestamp", "managedFields", "selfLink"} {
		delete(metadata, key)
	}
	fields = maps.Clone(fields)
	fields["metadata"] = metadata
	return fields
}
