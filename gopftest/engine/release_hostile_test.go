package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

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
