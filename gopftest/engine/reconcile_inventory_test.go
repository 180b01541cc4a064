package engine_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestInventoryThatAnotherClientRemovesIsRestored(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		const key = "examples.kopf.dev/gopf.children.children"
		c.CreateNamespace(t, "other")
		start := func() (stop func()) {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				for _, item := range r.Object.Spec.Items {
					child, kept := childMap(item, "a"), childMap(item+"-kept", "a")
					child.Namespace, kept.Namespace = "other", "other"
					gopf.Want(r, child)
					gopf.Want(r, kept, gopf.Orphan())
				}
				return nil
			}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
			return gopftest.Start(t, op, c, gopf.Log(quiet()))
		}
		stop := start()
		c.Create(t, withItems("x", "a", "one", "two"))
		settle()
		inventory := func() string { return c.Get(t, resource, "default", "x").GetAnnotations()[key] }
		strip := func() {
			c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": map[string]any{key: nil}}})
		}
		if inventory() == "" {
			t.Fatal("there is no inventory")
		}
		strip()
		settle()
		if inventory() == "" {
			t.Error("the inventory was not restored")
		}
		seen := 0
		changes(c, &seen)
		for range 60 { // a client that does it again and again
			strip()
			time.Sleep(time.Second)
		}
		writes := changes(c, &seen)
		if len(writes) > 60+3*15 {
			t.Errorf("the operator wrote %d times within a minute: %q", len(writes)-60, writes)
		}

		stop()
		strip()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"items": []any{"two"}}})
		start()
		settle()
		if _, found := c.Lookup(t, configMaps, "other", "one"); found {
			t.Error("a child without an owner reference outlives its declaration, because the inventory is lost")
		}
		c.Get(t, configMaps, "other", "two")
		c.Get(t, configMaps, "other", "one-kept") // it must outlive its declaration
		strip()
		c.Delete(t, resource, "default", "x")
		settle()
		if _, found := c.Lookup(t, configMaps, "other", "two"); found {
			t.Error("a child outlives its owner, because the inventory is lost")
		}
		c.Get(t, configMaps, "other", "two-kept")
	})
}
