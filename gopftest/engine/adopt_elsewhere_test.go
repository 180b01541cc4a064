package engine_test

import (
	"context"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The objects of two tenants declare a child of the same name in a third namespace. The first
// one keeps it.
func TestAChildInAnotherNamespaceIsNotTakenFromItsOwner(t *testing.T) {
	for name, opts := range map[string][]gopf.WantOption{
		"without adoption":                   nil,
		"with adoption":                      {gopf.AdoptExisting()},
		"with adoption, outliving its owner": {gopf.AdoptExisting(), gopf.Orphan()},
	} {
		owners(t, func(t *testing.T, c *gopftest.Cluster) {
			for _, n := range []string{"victim", "attacker", "shared"} {
				c.CreateNamespace(t, n)
			}
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				for _, item := range r.Object.Spec.Items {
					m := childMap(item, r.Object.Namespace)
					m.Namespace = "shared"
					gopf.Want(r, m, opts...)
				}
				return nil
			}, gopf.Owns[*corev1.ConfigMap](gopf.InOtherNamespaces()))
			gopftest.Start(t, op, c, gopf.Log(quiet()))
			create := func(namespace string) {
				o := withItems("o", "a", "one")
				o.SetNamespace(namespace)
				c.Create(t, o)
				settle()
			}
			create("victim")
			before := c.Get(t, configMaps, "shared", "one")
			check := func(when string) {
				now, ok := c.Lookup(t, configMaps, "shared", "one")
				if !ok || now.GetUID() != before.GetUID() || now.GetResourceVersion() != before.GetResourceVersion() {
					t.Errorf("%s, %s: the child exists: %t, with %v", name, when, ok, now)
				}
			}
			create("attacker")
			check("beside the other object")
			time.Sleep(time.Hour)
			check("an hour later")
			c.Delete(t, resource, "attacker", "o")
			time.Sleep(time.Hour)
			check("after the deletion of the other object")
			c.Delete(t, resource, "victim", "o")
			time.Sleep(time.Hour)
			if len(opts) < 2 {
				if _, ok := c.Lookup(t, configMaps, "shared", "one"); ok {
					t.Errorf("%s: the child outlives its owner", name)
				}
				return
			}
			check("after the deletion of its owner")
			create("attacker")
			if now := c.Get(t, configMaps, "shared", "one"); now.Object["data"].(map[string]any)["key"] != "attacker" {
				t.Errorf("%s: another object has not adopted the child of a deleted one: %v", name, now)
			}
		})
	}
}
