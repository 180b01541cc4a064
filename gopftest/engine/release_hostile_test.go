package engine_test

import (
	"bytes"
	"context"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/insight"
)

func TestReleaseIgnoresNullsInsteadOfStates(t *testing.T) {
	for name, test := range map[string]struct {
		with func(*gopf.Operator)
		key  string
	}{
		"as in Kopf":   {func(*gopf.Operator) {}, "kopf"},
		"in a status":  {inStatus("things"), "things"},
		"formerly one": {func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"old"} }, "old"},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				x := example("x", "a")
				x.Object["status"] = map[string]any{test.key: nil, "other": "kept"}
				c.Create(t, x)
				var out bytes.Buffer
				err := commands(t, c, plainOperator(&diary, test.with)).Release(t.Context(), insight.Releasing{Out: &out})
				if err != nil || !strings.Contains(out.String(), "1 seen, 0 released, 0 failed") {
					t.Errorf("got %v and %q", err, out.String())
				}
			})
		})
	}
}

func TestReleaseContinuesAfterAnUnreadableObject(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := plainOperator(&diary, nil)
		op.Settings.Election.Enabled, op.Settings.Election.Name, op.Settings.Election.Namespace = true, "things", "default"
		x := example("x", "a")
		runs(t, c, op, func() {
			c.Create(t, x)
			c.Create(t, example("y", "a"))
		})
		nested := any("bottom")
		for range 1500 {
			nested = map[string]any{"a": nested}
		}
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"nested": nested}})

		var out bytes.Buffer
		err := commands(t, c, op).Release(t.Context(), insight.Releasing{Out: &out})
		if err == nil || !strings.Contains(err.Error(), "1 objects of kopfexamples.v1.kopf.dev cannot be read, such as default/x: if they have the finalizer kopf.zalando.org/KopfFinalizerMarker, remove it") {
			t.Errorf("got %v", err)
		}
		for _, part := range []string{"2 seen, 1 released, 1 failed", "leases/default/things deleted"} {
			if !strings.Contains(out.String(), part) {
				t.Errorf("printed %q, want %q in it", out.String(), part)
			}
		}
	})
}

func TestReleaseOfDeletedObjectsDoesNotWaitForOthers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		gopftest.Start(t, plainOperator(&diary, nil), c)
		x := example("x", "a")
		x.SetFinalizers([]string{"other.io/guard"})
		c.Create(t, x)
		c.Create(t, example("y", "a"))
		settle()
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		var out bytes.Buffer
		err := commands(t, c, plainOperator(&diary, nil)).Release(ctx, insight.Releasing{Out: &out, Delete: true, Kinds: []string{"kopfexamples"}})
		if err != nil || !strings.Contains(out.String(), "2 deleted") || !strings.Contains(out.String(), "1 objects stay until others release them, such as kopfexamples/x (other.io/guard)") {
			t.Errorf("got %v and %q", err, out.String())
		}
	})
}

// The operator was killed, so its webhook configurations are left, and refuse all writes.
func TestReleaseDeletesTheWebhooksBeforeItWrites(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		const configurations = "admissionregistration.k8s.io/v1/validatingwebhookconfigurations"
		for _, plural := range []string{"validatingwebhookconfigurations", "mutatingwebhookconfigurations"} {
			c.Define(t, gopftest.Kind{Group: "admissionregistration.k8s.io", Version: "v1", Plural: plural})
		}
		op := owning()
		op.Settings.Election.Enabled, op.Settings.Election.Name, op.Settings.Election.Namespace = true, "things", "default"
		op.Settings.Admission.Server, op.Settings.Admission.Managed = hooked(c, new(atomic.Int32)), "hooks.kopf.dev"
		gopf.For[*Example](op, resource).Reconcile("children", func(context.Context, *gopf.Reconciliation[*Example]) error { return nil },
			gopf.Owns[*corev1.ConfigMap]())
		gopf.For[*corev1.ConfigMap](op, configMaps).Validate("check", func(context.Context, *gopf.Review[*corev1.ConfigMap]) error { return nil })
		runs(t, c, op, func() {
			forged := childMap("forged", "value")
			forged.Labels = map[string]string{"gopf.dev/children": "examples.kopf.dev"}
			forged.TypeMeta, forged.Namespace = metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"}, "default"
			c.Create(t, forged)
		})
		c.ServeWebhooks("hooks.test", http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusServiceUnavailable) }))

		var out bytes.Buffer
		if err := commands(t, c, op).Release(t.Context(), insight.Releasing{Out: &out}); err != nil || !strings.Contains(out.String(), "1 children released") {
			t.Errorf("got %v and %q", err, out.String())
		}
		if _, left := c.Lookup(t, configurations, "", "hooks.kopf.dev"); left {
			t.Error("the webhook configuration is left")
		}
	})
}
