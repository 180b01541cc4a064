package faults_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

var definitionsResource = schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"}

// ward is the definition of a kind that nobody else uses, in one version.
func ward(version string) *unstructured.Unstructured {
	anything := map[string]any{"type": "object", "x-kubernetes-preserve-unknown-fields": true}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": "wards.faults.gopf.dev"},
		"spec": map[string]any{
			"group": "faults.gopf.dev", "scope": "Namespaced",
			"names": map[string]any{"kind": "Ward", "plural": "wards", "singular": "ward"},
			"versions": []any{map[string]any{"name": version, "served": true, "storage": true,
				"subresources": map[string]any{"status": map[string]any{}}, "schema": map[string]any{"openAPIV3Schema": anything}}},
		},
	}}
}

// A definition is deleted while its objects have the operator's finalizer. Discovery
// says then that they cannot be patched. Afterwards it comes back in another version.
func TestADefinitionThatIsDeletedAndReplaced(t *testing.T) {
	t.Parallel()
	s := newSpace(t, cluster)
	definitions := s.cluster.Resource(definitionsResource)
	define := func(version string) {
		t.Helper()
		kit.Eventually(t, func() error {
			_, err := definitions.Create(s.ctx(), ward(version), metav1.CreateOptions{})
			return err
		})
	}
	create := func(version string) {
		t.Helper()
		gvr := schema.GroupVersionResource{Group: "faults.gopf.dev", Version: version, Resource: "wards"}
		obj := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "faults.gopf.dev/" + version, "kind": "Ward", "spec": map[string]any{"field": version}}}
		obj.SetName("w")
		kit.Eventually(t, func() error {
			_, err := s.cluster.Resource(gvr).Namespace(s.name).Create(s.ctx(), obj, metav1.CreateOptions{})
			return err
		})
	}
	n := &notes{calls: map[string][]string{}, events: map[string][]string{}}
	op := gopf.New()
	op.Settings.Posting.Enabled = false
	x := gopf.For[*Patient](op, "wards")
	x.OnCreate("create", func(_ context.Context, c *gopf.Change[*Patient]) error { n.call(c, "create"); return nil })
	x.OnDelete("delete", func(_ context.Context, c *gopf.Change[*Patient]) error { n.call(c, "delete"); return nil })
	called := func(want ...string) func() error {
		return func() error {
			if got := n.of("w"); !slices.Equal(got, want) {
				return fmt.Errorf("the calls are %q, want %q", got, want)
			}
			return nil
		}
	}

	define("v1")
	t.Cleanup(func() { _ = definitions.Delete(context.Background(), "wards.faults.gopf.dev", metav1.DeleteOptions{}) })
	o := runAs(s, newProxy(t, cluster), cluster, op, n)
	create("v1")
	kit.Eventually(t, called("create v1 #0"))
	if err := definitions.Delete(s.ctx(), "wards.faults.gopf.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, called("create v1 #0", "delete v1 #0"))
	kit.Eventually(t, func() error {
		if _, err := definitions.Get(s.ctx(), "wards.faults.gopf.dev", metav1.GetOptions{}); !apierrors.IsNotFound(err) {
			return fmt.Errorf("the definition is still there: %w", err)
		}
		return nil
	})
	define("v2")
	create("v2")
	began := time.Now()
	kit.Eventually(t, called("create v1 #0", "delete v1 #0", "create v2 #0"))
	t.Logf("the other version was handled %.1f s after its first object was created", time.Since(began).Seconds())
	if o.Log.Has("is ambiguous") {
		t.Error("the two versions were ambiguous")
	}
	if err := definitions.Delete(s.ctx(), "wards.faults.gopf.dev", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	kit.Eventually(t, called("create v1 #0", "delete v1 #0", "create v2 #0", "delete v2 #0"))
}
