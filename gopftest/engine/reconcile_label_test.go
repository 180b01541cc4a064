package engine_test

import (
	"context"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A child without the label of the operator is not in its watch. So its deletion would be
// seen only at the next call.
func TestChildrenThatAreOnlyCreatedGetTheirLabelBack(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			gopf.Want(r, childMap("one", r.Object.Spec.Field), gopf.CreateOnly())
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"key": "of a user"}})
		settle()
		seen := len(c.Writes())

		c.Patch(t, configMaps, "default", "one", map[string]any{"metadata": map[string]any{"labels": map[string]any{"gopf.dev/children": nil}}})
		settle()
		one := c.Get(t, configMaps, "default", "one")
		if one.GetLabels()["gopf.dev/children"] != "examples.kopf.dev" || one.Object["data"].(map[string]any)["key"] != "of a user" {
			t.Errorf("the child is %v", one.Object)
		}
		if got := changes(c, &seen); !slices.Equal(got, []string{"patch configmaps/one"}) {
			t.Errorf("the operator wrote %q; want only the label", got)
		}

		c.Delete(t, configMaps, "default", "one")
		settle()
		if data := c.Get(t, configMaps, "default", "one").Object["data"].(map[string]any); data["key"] != "a" {
			t.Errorf("the deleted child was not created again: %v", data)
		}
	})
}
