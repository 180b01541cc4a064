package engine_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The event of a user's change reaches the operator after the operator has deleted the
// child. For a moment, the child seems to exist, and to need the finalizer of its owner.
func TestLateEventOfADeletedChildLeavesNoFinalizer(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		c.CreateNamespace(t, "other")
		op := owning()
		gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
			time.Sleep(20 * time.Millisecond)
			if r.Object.Spec.Field == "a" {
				child := childMap("far", "value")
				child.Namespace = "other"
				gopf.Want(r, child)
			}
			return nil
		}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
		c.Fault(gopftest.Requests("watch", "configmaps"), gopftest.DelayEvents(50*time.Millisecond))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		c.Create(t, example("x", "a"))
		settle()
		if got := c.Get(t, resource, "default", "x").GetFinalizers(); len(got) != 1 {
			t.Fatalf("the owner of a child in another namespace has the finalizers %v", got)
		}

		// In milliseconds: the child is changed at 0 and deleted at 30. The events of that
		// come at 50 and 80. The owner is looked at in between, at 75.
		c.Fault(gopftest.Requests("patch", "kopfexamples").First(1), gopftest.HoldAnswer(45*time.Millisecond))
		c.Patch(t, configMaps, "other", "far", `{"data": {"user": "was here"}}`)
		time.Sleep(10 * time.Millisecond)
		c.Patch(t, resource, "default", "x", `{"spec": {"field": "b"}}`)
		settle()
		if _, found := c.Lookup(t, configMaps, "other", "far"); found {
			t.Error("the child still exists")
		}
		if got := c.Get(t, resource, "default", "x").GetFinalizers(); len(got) > 0 {
			t.Errorf("the object without children keeps the finalizers %v", got)
		}
	})
}

// The operator creates a child again that a user has deleted, and crashes before it saves
// the uid of the new one.
func TestChildCreatedAgainBeforeACrashIsPruned(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		start := func() (stop func()) {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				reconciled(r)
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			return gopftest.Start(t, op, c, gopf.Log(quiet()))
		}
		stop := start()
		c.Create(t, withItems("x", "a", "one"))
		settle()
		crash := c.Fault(gopftest.Writes("kopfexamples"), gopftest.Drop())
		c.Delete(t, configMaps, "default", "one")
		settle()
		c.Get(t, configMaps, "default", "one")
		stop()
		crash.Stop()
		c.Patch(t, resource, "default", "x", `{"spec": {"items": []}}`)
		start()
		settle()
		if _, found := c.Lookup(t, configMaps, "default", "one"); found {
			t.Error("the child that is no longer declared exists")
		}
	})
}
