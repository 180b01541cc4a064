package metacontroller

import (
	"crypto/sha256"
	"fmt"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// A tenant can create and delete parents, whose children have other names each time.
func TestTheFormsOfDeletedChildrenAreForgotten(t *testing.T) {
	for name, r := range map[string]resource{
		"namespaced":     {gvr: schema.GroupVersionResource{Version: "v1", Resource: "configmaps"}, namespaced: true},
		"cluster-scoped": {gvr: schema.GroupVersionResource{Version: "v1", Resource: "persistentvolumes"}},
	} {
		c := &controller{applied: map[string]appliedForm{}}
		events := c.childEvents(r)
		for i := range 100 {
			desired := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": fmt.Sprint("child-", i), "namespace": "tenant"}}}
			c.remember(appliedName(r, desired), formOf([sha256.Size]byte{}, desired))
			if !r.namespaced {
				desired.SetNamespace("")
			}
			events.OnUpdate(desired, desired)
			if len(c.applied) != 1 {
				t.Fatalf("%s: %d forms of one child", name, len(c.applied))
			}
			events.OnDelete(desired)
		}
		if len(c.applied) > 0 {
			t.Errorf("%s: %d forms of deleted children", name, len(c.applied))
		}
	}
}
