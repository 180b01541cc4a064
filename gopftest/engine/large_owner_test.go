package engine_test

import (
	"context"
	"encoding/base64"
	"math/rand/v2"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The states of large objects are not kept between two calls. A changed child leads to a call
// nevertheless, and a change that matters to no handler to none.
func TestTheChildrenOfLargeObjectsAreRepaired(t *testing.T) {
	for name, size := range map[string]int{"small": 0, "large": 150 << 10, "huge": 600 << 10} {
		owners(t, func(t *testing.T, c *gopftest.Cluster) {
			calls := 0
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				calls++
				for _, item := range r.Object.Spec.Items {
					gopf.Want(r, childMap(item, r.Object.Spec.Field))
				}
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			gopftest.Start(t, op, c, gopf.Log(quiet()))
			noise := make([]byte, size)
			_, _ = rand.NewChaCha8([32]byte{}).Read(noise)
			o := withItems("o", "a", "one")
			_ = unstructured.SetNestedField(o.Object, base64.StdEncoding.EncodeToString(noise), "spec", "noise")
			c.Create(t, o)
			settle()
			before := calls
			c.Delete(t, configMaps, "default", "one")
			settle()
			if _, ok := c.Lookup(t, configMaps, "default", "one"); !ok || calls == before {
				t.Errorf("%s: the child exists: %t, after %d calls", name, ok, calls-before)
			}
			before = calls
			c.Patch(t, resource, "default", "o", map[string]any{"status": map[string]any{"note": "other"}})
			settle()
			if calls != before {
				t.Errorf("%s: %d calls for a change of the status", name, calls-before)
			}
			changeField(t, c, "o", "b")
			settle()
			if calls == before {
				t.Errorf("%s: no call for a change of the specification", name)
			}
		})
	}
}
