package apiclient

import (
	"maps"
	"reflect"
	"slices"

	"gopf.dev/gopf/diff"
)

// has reports whether an object contains everything in asked, both as decoded JSON.
// optional reports which values may be absent. Values that the server writes in another
// form are not recognized.
func has(object, asked any, optional func(any) bool) bool {
	switch wanted := asked.(type) {
	case map[string]any:
		if fields, ok := object.(map[string]any); ok {
			for key, value := range wanted {
				if !has(fields[key], value, optional) {
					return false
				}
			}
			return true
		}
	case []any:
		if items, ok := object.([]any); ok {
			return slices.EqualFunc(items, wanted, func(item, value any) bool { return has(item, value, optional) })
		}
	}
	return object == nil && optional(asked) || same(object, asked)
}

// isEmpty reports whether servers omit the value from objects.
func isEmpty(v any) bool {
	switch v := v.(type) {
	case map[string]any:
		return !slices.ContainsFunc(slices.Collect(maps.Values(v)), func(inner any) bool { return !isEmpty(inner) })
	case []any:
		return len(v) == 0
	}
	return v == nil || reflect.ValueOf(v).IsZero()
}

// isNull reports whether the value removes fields in a merge patch.
func isNull(v any) bool {
	if fields, ok := v.(map[string]any); ok && len(fields) > 0 {
		return !slices.ContainsFunc(slices.Collect(maps.Values(fields)), func(inner any) bool { return !isNull(inner) })
	}
	return v == nil
}

// same reports whether two scalars are equal. 1 and 1.0 are equal in JSON. It returns
// false for maps and lists.
func same(a, b any) bool {
	switch a.(type) {
	case map[string]any, []any:
		return false
	}
	return diff.Equal(a, b)
}

// chosen returns the fields that the writer controls, without those that the server sets.
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
