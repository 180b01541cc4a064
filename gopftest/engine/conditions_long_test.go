package engine_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// Messages of conditions quote the object. The schema of Kubernetes' conditions has a limit for
// them, and a refused status would lose the inventory as well.
func TestLongTextsOfAnObjectDoNotMakeItsStatusInvalid(t *testing.T) {
	const limited = `{"type": "object", "properties": {"conditions": {"type": "array", "items": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {
		"type": {"type": "string"}, "message": {"type": "string", "maxLength": 32768}}}}}}`
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Create(t, thingsCRD(t, limited, withStatus))
		op := gopf.New(gopf.Identity("things.example.com"))
		gopf.For[*Example](op, thingsResource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			gopf.Want(r, childMap("one", "a"))
			return gopf.Permanent(errors.New("invalid: " + r.Object.Spec.Field))
		}, gopf.Owns[*corev1.ConfigMap]())
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		long := strings.Repeat("x", 100<<10)
		failing, paused := thing("failing"), thing("paused")
		failing.Object["spec"].(map[string]any)["field"] = long
		paused.SetAnnotations(map[string]string{"gopf.dev/pause": long})
		c.Create(t, failing)
		c.Create(t, paused)
		time.Sleep(time.Minute)
		for name, kind := range map[string]string{"failing": "Stalled", "paused": "Paused"} {
			list, _, _ := unstructured.NestedSlice(c.Get(t, thingsResource, "default", name).Object, "status", "conditions")
			found := false
			for _, one := range list {
				m, _ := one.(map[string]any)
				found = found || m["type"] == kind && m["status"] == "True"
			}
			if !found {
				t.Errorf("%s has no condition %s", name, kind)
			}
		}
		seen := 0
		changes(c, &seen)
		c.Patch(t, thingsResource, "default", "paused", map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
		time.Sleep(time.Hour)
		if got := changes(c, &seen); len(got) > 1 {
			t.Errorf("an idle operator wrote %q", got)
		}
	})
}
