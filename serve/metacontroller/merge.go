package metacontroller

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

// LastApplied is the annotation with the last desired form of a child.
const LastApplied = "metacontroller.k8s.io/last-applied-configuration"

// listKeys are the fields that identify list items, in order of preference.
var listKeys = []string{"containerPort", "port", "mountPath", "name", "uid", "ip", "path"}

// kept are the fields of metadata that belong to the API server.
var kept = []string{"selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "managedFields"}

// Merge returns the observed child with the fields of its desired form. Fields that an
// earlier desired form had and the new one lacks are removed. Other fields stay. The
// result has the annotation [LastApplied] for the next merge. changed reports whether the
// result differs from the observed child.
func Merge(observed, desired map[string]any) (merged map[string]any, changed bool, err error) {
	last := map[string]any{}
	if text, ok, _ := unstructured.NestedString(observed, "metadata", "annotations", LastApplied); ok {
		if err := utiljson.Unmarshal([]byte(text), &last); err != nil {
			return nil, false, fmt.Errorf("can't read the annotation %s: %w", LastApplied, err)
		}
	}
	merged = mergeMaps(observed, last, desired)
	was, _ := observed["metadata"].(map[string]any)
	meta, ok := merged["metadata"].(map[string]any)
	if !ok {
		meta = map[string]any{}
		merged["metadata"] = meta
	}
	for _, field := range kept {
		restore(meta, was, field)
	}
	restore(merged, observed, "status")
	if err := Annotate(merged, desired); err != nil {
		return nil, false, err
	}
	return merged, !reflect.DeepEqual(merged, observed), nil
}

// Annotate sets the annotation [LastApplied] of a child to its desired form.
func Annotate(child, desired map[string]any) error {
	clean := runtime.DeepCopyJSON(desired)
	unstructured.RemoveNestedField(clean, "metadata", "annotations", LastApplied)
	text, err := json.Marshal(clean) // escapes <, > and & like Metacontroller: other bytes would be a change
	if err != nil {
		return err
	}
	object := unstructured.Unstructured{Object: child}
	annotations := object.GetAnnotations()
	if annotations == nil {
		annotations = map[string]string{}
	}
	annotations[LastApplied] = string(text)
	object.SetAnnotations(annotations)
	return nil
}

func restore(to, from map[string]any, field string) {
	if value, ok := from[field]; ok {
		to[field] = runtime.DeepCopyJSONValue(value)
	} else {
		delete(to, field)
	}
}

// mergeValues merges values of one field. A value of another type than the observed map or
// list counts as empty.
func mergeValues(observed, last, desired any) any {
	switch observed := observed.(type) {
	case map[string]any:
		last, _ := last.(map[string]any)
		desired, _ := desired.(map[string]any)
		return mergeMaps(observed, last, desired)
	case []any:
		last, _ := last.([]any)
		desired, _ := desired.([]any)
		if key := listKey(observed, last, desired); key != "" {
			return mergeLists(key, observed, last, desired)
		}
		if desired == nil {
			return []any{}
		}
		return runtime.DeepCopyJSONValue(desired)
	default:
		return runtime.DeepCopyJSONValue(desired)
	}
}

func mergeMaps(observed, last, desired map[string]any) map[string]any {
	merged := make(map[string]any, len(observed))
	for key, value := range observed {
		_, wasSet := last[key]
		if _, isSet := desired[key]; !wasSet && !isSet { // copied once: a tenant chooses the depth
			merged[key] = runtime.DeepCopyJSONValue(value)
		}
	}
	for key, value := range desired {
		merged[key] = mergeValues(observed[key], last[key], value)
	}
	return merged
}

// listKey returns the field that identifies the items of the lists. It is empty if an item
// is not a map, or if the items have no such field in common.
func listKey(lists ...[]any) string {
	var common []string
	for i, item := range slices.Concat(lists...) {
		fields, ok := item.(map[string]any)
		if !ok {
			return ""
		}
		if i == 0 {
			common = slices.Clone(listKeys)
		}
		common = slices.DeleteFunc(common, func(key string) bool { _, ok := fields[key]; return !ok })
	}
	if len(common) == 0 {
		return ""
	}
	return common[0]
}

// mergeLists merges lists of maps by a field: first the observed items in their order, then
// the added ones. If several items have the same value of the field, the last one wins.
func mergeLists(key string, observed, last, desired []any) []any {
	merged := mergeMaps(byKey(key, observed), byKey(key, last), byKey(key, desired))
	list := []any{}
	for _, item := range slices.Concat(observed, desired) {
		name := keyText(item, key)
		if value, ok := merged[name]; ok {
			list = append(list, value)
			delete(merged, name)
		}
	}
	return list
}

func byKey(key string, list []any) map[string]any {
	items := map[string]any{}
	for _, item := range list {
		items[keyText(item, key)] = item
	}
	return items
}

func keyText(item any, key string) string {
	fields, _ := item.(map[string]any)
	return fmt.Sprint(fields[key])
}

// sortedKeys returns the keys of a map in order.
func sortedKeys[V any](m map[string]V) []string { return slices.Sorted(maps.Keys(m)) }
