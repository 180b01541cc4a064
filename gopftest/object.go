package gopftest

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
)

func newEntry(obj *unstructured.Unstructured, version int64) *entry {
	return &entry{
		key:     objectKey{obj.GetNamespace(), obj.GetName()},
		version: version,
		uid:     obj.GetUID(),
		deleted: obj.GetDeletionTimestamp() != nil,
		labels:  obj.GetLabels(),
		owners:  obj.GetOwnerReferences(),
		raw:     encode(obj.Object),
	}
}

// object returns a decoded copy, which the caller may change.
func (e *entry) object() *unstructured.Unstructured {
	var content map[string]any
	if err := utiljson.Unmarshal(e.raw, &content); err != nil {
		panic(fmt.Sprintf("gopftest: a stored object is not JSON: %v", err)) // the store encoded it
	}
	return &unstructured.Unstructured{Object: content}
}

// in returns the JSON of the object in an API version of its resource.
func (e *entry) in(version string, res *resource) []byte {
	if version == res.Version {
		return e.raw
	}
	obj := e.object()
	obj.SetAPIVersion(Kind{Group: res.Group, Version: version}.apiVersion())
	return encode(obj.Object)
}

// encode returns the same bytes for equal objects. A comparison of the bytes therefore
// detects writes without effect.
func encode(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(fmt.Sprintf("gopftest: encode: %v", err)) // all values here are decoded JSON or API types
	}
	return raw
}

// normalizeMetadata converts the metadata to its Go type and back, as the real API
// server does: this drops unknown fields and empty values, and rejects wrong types.
func normalizeMetadata(obj *unstructured.Unstructured) error {
	var meta metav1.ObjectMeta
	switch m := obj.Object["metadata"].(type) {
	case nil:
	case map[string]any:
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(m, &meta); err != nil {
			return err
		}
	default:
		return fmt.Errorf("the metadata has type %T; want an object", m)
	}
	meta.SelfLink = "" //nolint:staticcheck // the real API server also clears it
	m, err := runtime.DefaultUnstructuredConverter.ToUnstructured(&meta)
	if err != nil {
		return err
	}
	if m["creationTimestamp"] == nil {
		delete(m, "creationTimestamp")
	}
	obj.Object["metadata"] = m
	return nil
}

// parseVersion parses a resourceVersion. Empty means 0.
func parseVersion(s string) (int64, error) {
	if s == "" {
		return 0, nil
	}
	v, err := strconv.ParseUint(s, 10, 63)
	return int64(v), err
}

// lookup returns the value at a dotted path as text, or "".
func lookup(obj *unstructured.Unstructured, path string) string {
	v, ok, err := unstructured.NestedFieldNoCopy(obj.Object, strings.Split(path, ".")...)
	if err != nil || !ok || v == nil {
		return ""
	}
	if s, ok := v.(string); ok {
		return s
	}
	return fmt.Sprint(v)
}
