package metacontroller

import (
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// leafIn returns a child, or an object of another tenant.
func leafIn(namespace, name, value string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "ctl.example.com/v1", "kind": "Leaf", "spec": map[string]any{"value": value}}}
	o.SetName(name)
	o.SetNamespace(namespace)
	o.SetLabels(map[string]string{"app": "p"})
	return o
}

// complains reports whether the parent has an event with a text.
func complains(t *testing.T, c *gopftest.Cluster, text string) bool {
	t.Helper()
	return slices.ContainsFunc(c.List(t, "v1/events", "default"), func(o *unstructured.Unstructured) bool {
		return scalar(o, "involvedObject", "name") == "p" && strings.Contains(scalar(o, "message"), text)
	})
}

// A parent names the namespaces of its children. Its tenant has no permissions in them.
func TestChildrenInOtherNamespacesAreRefused(t *testing.T) {
	for name, manager := range map[string]string{"dynamic": "", "server-side": "metacontroller"} {
		for _, kind := range []string{"CompositeController", "DecoratorController"} {
			t.Run(name+"/"+kind, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					list := []any{leafIn("default", "own", "new").Object, leafIn("victim", "free", "new").Object, leafIn("victim", "taken", "new").Object}
					c := newStage(t, Options{Transport: &answering{body: map[string]any{"children": list, "attachments": list}}, ServerSide: manager})
					c.CreateNamespace(t, "victim")
					before := c.Create(t, leafIn("victim", "taken", "old"))
					c.Create(t, thing())
					ctl := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves", "updateStrategy": map[string]any{"method": InPlace}})
					ctl.SetKind(kind)
					if kind == "DecoratorController" {
						spec := ctl.Object["spec"].(map[string]any)
						spec["resources"], spec["attachments"] = []any{spec["parentResource"]}, spec["childResources"]
						delete(spec, "parentResource")
						delete(spec, "childResources")
					}
					c.Create(t, ctl)
					time.Sleep(10 * time.Second)
					if got := c.Get(t, leaves, "victim", "taken"); got.GetResourceVersion() != before.GetResourceVersion() {
						t.Errorf("the object of another tenant became %v", got.Object)
					}
					for _, o := range append(c.List(t, leaves, "default"), c.List(t, leaves, "victim")...) {
						if o.GetName() != "taken" {
							t.Errorf("%s was created", describe(o))
						}
					}
					if !complains(t, c, "the child Leaf victim/free of Thing default/p is in another namespace than its parent") {
						t.Error("there is no event about the namespace")
					}
				})
			})
		}
	}
}
