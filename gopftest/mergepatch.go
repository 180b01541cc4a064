package gopftest

import (
	"maps"

	"k8s.io/apimachinery/pkg/runtime"
)

// mergePatched returns the object with the merge patch applied. It changes neither of the
// two, and the result shares no value with the patch. It has the quirks of the library
// that the real API server uses, but needs no JSON text in between. Tests with large
// objects spend most of their time on that text.
func mergePatched(doc, patch map[string]any) map[string]any {
	merged := maps.Clone(doc)
	for key, v := range patch {
		current := merged[key]
		switch {
		case v == nil:
			delete(merged, key)
		case current == nil:
			merged[key] = withoutNulls(v)
		default:
			merged[key] = mergedValue(current, v)
		}
	}
	return merged
}

func mergedValue(current, patch any) any {
	doc, ok := current.(map[string]any)
	if !ok {
		return withoutNulls(patch)
	}
	if more, ok := patch.(map[string]any); ok {
		return mergePatched(doc, more)
	}
	return runtime.DeepCopyJSONValue(patch) // in a list that replaces an object, nulls stay
}

// withoutNulls returns a copy without the fields that are null. Items of lists stay, even
// if they are null.
func withoutNulls(v any) any {
	switch v := v.(type) {
	case map[string]any:
		kept := make(map[string]any, len(v))
		for key, field := range v {
			if field != nil {
				kept[key] = withoutNulls(field)
			}
		}
		return kept
	case []any:
		items := make([]any, len(v))
		for i, item := range v {
			items[i] = withoutNulls(item)
		}
		return items
	}
	return v
}
