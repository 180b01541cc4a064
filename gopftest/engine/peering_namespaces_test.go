package engine_test

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// An operator of many namespaces takes part in a peering per namespace: one watch for each,
// and renewals of its record where a peering object exists.
func TestNamespacesWithoutPeeringObjectsCostFewWrites(t *testing.T) {
	const namespaces, used, minutes = 100, 10, 10
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Define(t, gopftest.Kind{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true})
		for i := range namespaces {
			name := fmt.Sprintf("many-%d", i)
			c.Create(t, &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace", "metadata": map[string]any{"name": name}}})
			if i < used {
				c.Create(t, &unstructured.Unstructured{Object: map[string]any{
					"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": map[string]any{"namespace": name, "name": "default"},
				}})
			}
		}
		var diary calls
		gopftest.Start(t, peer(&diary, "one", 0), c, gopf.Namespaces("many-*"))
		time.Sleep(time.Minute)
		opened := c.Count(gopftest.Requests("list", "kopfpeerings")) + c.Count(gopftest.Requests("watch", "kopfpeerings"))
		if opened < namespaces || opened > 2*namespaces {
			t.Errorf("%d lists and watches of %d namespaces", opened, namespaces)
		}
		before := c.Writes("kopfpeerings")
		time.Sleep(minutes * time.Minute)
		renewals, futile := 0, 0
		for _, r := range c.Writes("kopfpeerings")[len(before):] {
			if r.Code == http.StatusNotFound {
				futile++
			} else {
				renewals++
			}
		}
		if renewals < used*minutes || renewals > 2*used*minutes {
			t.Errorf("%d renewals in %d minutes for %d peering objects", renewals, minutes, used)
		}
		if limit := 4 * (namespaces - used); futile > limit {
			t.Errorf("%d writes in %d minutes without a peering object, want at most %d", futile, minutes, limit)
		}
		join := func(ns int) {
			c.Create(t, &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "kopf.dev/v1", "kind": "KopfPeering", "metadata": map[string]any{"namespace": fmt.Sprintf("many-%d", ns), "name": "default"},
			}})
		}
		join(namespaces - 1)
		time.Sleep(10 * time.Second)
		if _, found, _ := unstructured.NestedMap(c.Get(t, "kopf.dev/v1/kopfpeerings", fmt.Sprintf("many-%d", namespaces-1), "default").Object, "status", "one"); !found {
			t.Error("a new peering object has no record of the operator")
		}
	})
}
