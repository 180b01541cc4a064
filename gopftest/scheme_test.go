package gopftest

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/gopftest/internal/stable"
)

// The in-memory server is built with fewer types than tests.
func TestTypesOfTheServerIncludeAllWellKnownKinds(t *testing.T) {
	for _, b := range builtins() {
		gvk := schema.GroupVersionKind{Group: b.Group, Version: b.Version, Kind: b.Kind.Kind}
		if b.custom || gvk.Kind == "CustomResourceDefinition" {
			continue
		}
		for _, kind := range []string{gvk.Kind, gvk.Kind + "List"} {
			if !stable.Scheme().Recognizes(gvk.GroupVersion().WithKind(kind)) {
				t.Errorf("the types of the in-memory server lack %s of %s", kind, gvk.GroupVersion())
			}
		}
	}
}
