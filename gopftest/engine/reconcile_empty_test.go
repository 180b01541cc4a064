package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A handler may leave a map of a child empty for others, such as the data of a ConfigMap.
func TestOthersFillAnEmptyMapOfAChild(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			gopf.Want(r, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "one"}, "data": map[string]any{}}})
			return nil
		}, gopf.Owns[*unstructured.Unstructured](gopf.OfResource(configMaps)))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, withItems("o", "a"))
		time.Sleep(time.Minute)
		before := len(c.Writes())
		for i := range 20 {
			c.Patch(t, configMaps, "default", "one", map[string]any{"data": map[string]any{"counter": fmt.Sprint(i)}})
			time.Sleep(10 * time.Second)
		}
		if n := len(c.Writes()) - before; n > 3 {
			t.Errorf("the operator made %d writes because another client changed its own key 20 times", n)
		}
		one := c.Get(t, configMaps, "default", "one")
		if data, _, _ := unstructured.NestedString(one.Object, "data", "counter"); data != "19" {
			t.Errorf("the key of the other client is %q", data)
		}
	})
}
