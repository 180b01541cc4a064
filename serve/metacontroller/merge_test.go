package metacontroller

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime"
)

// Metacontroller and earlier versions have escaped these characters. With other bytes, the
// children would count as changed, and some strategies delete and create them again.
func TestChildrenWithEscapedCharactersAreUnchanged(t *testing.T) {
	desired := map[string]any{"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "a"}, "spec": map[string]any{"command": []any{"a && b > c"}}}
	observed := runtime.DeepCopyJSON(desired)
	observed["metadata"].(map[string]any)["annotations"] = map[string]any{
		LastApplied: `{"apiVersion":"v1","kind":"Pod","metadata":{"name":"a"},"spec":{"command":["a \u0026\u0026 b \u003e c"]}}`,
	}
	if _, changed, err := Merge(observed, desired); err != nil || changed {
		t.Errorf("changed: %v, %v", changed, err)
	}
	name, err := RevisionName("pods", "", "u", map[string]any{"spec": "a && b"})
	if want := "pods.core-44c4cb559592c4843fae4be79a6c38aeedd6d52d"; err != nil || name != want {
		t.Errorf("the revision is %s, want %s: %v", name, want, err)
	}
}
