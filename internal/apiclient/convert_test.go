package apiclient

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// Reconcile adds its marks to manifests, and the handler may use its object again.
func TestAManifestIsACopyOfTheObject(t *testing.T) {
	object := func() *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"name": "a", "labels": map[string]any{}}, "data": map[string]any{}}}
	}
	obj := object()
	fields, err := manifest(obj, kube.Target{Info: kind.Info{Version: "v1", Kind: "ConfigMap"}, Namespace: "ns"})
	if err != nil {
		t.Fatal(err)
	}
	fields["metadata"].(map[string]any)["labels"].(map[string]any)["marked"] = "yes"
	fields["data"].(map[string]any)["key"] = "value"
	if diff := cmp.Diff(object(), obj); diff != "" {
		t.Errorf("the object has changed: -before +after\n%s", diff)
	}
}

// Values of Go may share a text of an object that their JSON repeats.
func TestObjectsThatNoServerAcceptsAreNotEncoded(t *testing.T) {
	text := strings.Repeat("x", 100_000)
	for n, fits := range map[int]bool{20: true, 40: false} {
		data := map[string]string{}
		for i := range n {
			data[strconv.Itoa(i)] = text
		}
		_, err := toFields(&corev1.ConfigMap{Data: data})
		if (err == nil) != fits || err != nil && !strings.Contains(err.Error(), "3 MiB") {
			t.Errorf("%d times: %v", n, err)
		}
	}
}
