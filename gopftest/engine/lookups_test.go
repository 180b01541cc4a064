package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// discoveries returns the number of discoveries so far.
func discoveries(c *gopftest.Cluster) (n int) {
	for _, r := range c.Requests() {
		if r.Path == "/apis" {
			n++
		}
	}
	return n
}

// A discovery reads the resources of the whole cluster, so tenants must not be able to cause
// many of them.
func TestForgedInventoriesCauseFewDiscoveries(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		const key, objects = "examples.kopf.dev/gopf.children.children", 50
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			reconciled(r)
			return nil
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		for i := range objects {
			c.Create(t, withItems(fmt.Sprint("x", i), "a", "one"))
		}
		settle()
		before := discoveries(c)
		for round := range 4 {
			for i := range objects {
				name := fmt.Sprint("x", i)
				uid := c.Get(t, resource, "default", name).GetUID()
				inventory := fmt.Sprintf(`1;%.8s;nope.example.com/v1 Nope;0/x/AAAAAAAAAAAAAAAA`, uid)
				c.Patch(t, resource, "default", name, map[string]any{
					"metadata": map[string]any{"annotations": map[string]any{key: fmt.Sprintf(`{"started":"2026-01-01T00:00:00","purpose":"reconcile","message":%q}`, inventory)}},
					"spec":     map[string]any{"field": fmt.Sprint(round)},
				})
			}
			time.Sleep(15 * time.Second)
		}
		time.Sleep(time.Minute)
		if n := discoveries(c) - before; n > 12 {
			t.Errorf("%d discoveries in two minutes", n)
		}
	})
}

func TestAKindIsFoundSoonAfterItWasUnknown(t *testing.T) {
	handled(t, func(ctx context.Context, t *testing.T, c *gopftest.Cluster, ch *gopf.Change[*Example]) {
		gadget := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "example.com/v1", "kind": "Gadget", "metadata": map[string]any{"name": "g"}}}
		if err := ch.API.Create(ctx, gadget); err == nil {
			t.Error("the kind is known already")
		}
		c.Define(t, gopftest.Kind{Group: "example.com", Version: "v1", Plural: "gadgets", Kind: "Gadget", Namespaced: true})
		time.Sleep(2 * time.Second)
		must(t, ch.API.Create(ctx, gadget))
	})
}
