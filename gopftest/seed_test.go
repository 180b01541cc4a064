package gopftest_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

func TestSeedStoresTheDumpedObjectUnchanged(t *testing.T) {
	const kexes = "kopf.dev/v1/kopfexamples"
	before := gopftest.NewCluster(t, kexes)
	before.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": "x", "namespace": "default", "finalizers": []any{"example.com/wait"}},
		"spec":     map[string]any{"field": "a"},
	}})
	before.PatchStatus(t, kexes, "default", "x", `{"status":{"phase":"Ready"}}`)
	before.Delete(t, kexes, "default", "x")
	dumped := before.Get(t, kexes, "default", "x")

	after := gopftest.NewCluster(t, kexes)
	after.Seed(t, dumped)
	restored := after.Get(t, kexes, "default", "x")
	for _, obj := range []*unstructured.Unstructured{dumped, restored} {
		obj.SetResourceVersion("")
	}
	if diff := cmp.Diff(dumped.Object, restored.Object); diff != "" {
		t.Errorf("-dumped +restored\n%s", diff)
	}
}
