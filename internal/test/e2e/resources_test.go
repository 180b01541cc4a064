package e2e

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestAResourceIsServedOnceItAppears(t *testing.T) {
	t.Parallel()
	fruits := newDefinition(t)
	served, called := examples(t, namespace(t)), &calls{}
	op := greeter(called)
	op.Resource(fruits.resource.GroupResource().String()).OnCreate("ripen", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		called.add(c.Object)
		return nil
	})
	sent := &requests{}
	operator := run(t, op, gopf.Namespaces(served.namespace), gopf.Cluster(sent.config()))
	operator.Log.WaitFor(t, "[WARNING ]", "does not have the resource", fruits.resource.Resource)

	served.create("meanwhile", nil) // others do not wait for it
	served.awaitHandled("meanwhile")

	objects := fruits.define(served.namespace)
	objects.create("apple", nil)
	objects.awaitHandled("apple")
	// It goes and comes back.
	fruits.remove()
	operator.Log.WaitFor(t, "gone from the cluster", fruits.resource.Resource)
	objects = fruits.define(served.namespace)
	objects.create("pear", nil)
	objects.awaitHandled("pear")
	operator.Stop()

	want := []string{"meanwhile", "apple", "pear"}
	for i := range want {
		want[i] = served.namespace + "/" + want[i]
	}
	if diff := cmp.Diff(want, called.all()); diff != "" {
		t.Errorf("calls: -want +got\n%s", diff)
	}
	// At each absence; while a definition is being removed, its resource may be there
	// without being of use.
	if lines := operator.Log.With("Not everything can be served", fruits.resource.Resource); len(lines) < 2 || len(lines) > 3 {
		t.Errorf("got %q, want a line at the start, and one after the removal", lines)
	}
	// There is no status subresource, so that even a result would need no other request.
	if diff := cmp.Diff([]string{"PATCH " + fruits.resource.Resource + "/apple"}, sent.about("apple")); diff != "" {
		t.Errorf("requests: -want +got\n%s", diff)
	}
}

func TestWithoutStatusSubresourceOneWriteIsEnough(t *testing.T) {
	t.Parallel()
	fruits := newDefinition(t)
	objects := fruits.define(namespace(t))
	op := gopf.New()
	op.Resource(fruits.resource.GroupResource().String()).OnCreate("ripen", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		c.SetResult("sweet")
		return nil
	})
	sent := &requests{}
	operator := run(t, op, gopf.Namespaces(objects.namespace), gopf.Cluster(sent.config()))
	objects.create("apple", nil)
	apple := objects.awaitHandled("apple")
	objects.create("pear", nil)
	objects.awaitHandled("pear")
	operator.Stop()
	if got, _, _ := unstructured.NestedString(apple.Object, "status", "ripen"); got != "sweet" {
		t.Errorf("status: got %v", apple.Object["status"])
	}
	if diff := cmp.Diff([]string{"PATCH " + fruits.resource.Resource + "/apple"}, sent.about("apple")); diff != "" {
		t.Errorf("requests: -want +got\n%s", diff)
	}
}

// definition is a custom resource that only one test knows, without a status subresource.
type definition struct {
	t        *testing.T
	resource schema.GroupVersionResource
}

func newDefinition(t *testing.T) definition {
	plural := fmt.Sprintf("fruits%08x", rand.Uint32())
	d := definition{t, schema.GroupVersionResource{Group: "e2e.gopf.dev", Version: "v1", Resource: plural}}
	t.Cleanup(func() { d.all().delete(d.name()) })
	return d
}

func (d definition) name() string { return d.resource.GroupResource().String() }

// kind is unique too: several resources of a kind are hard to tell apart.
func (d definition) kind() string { return "F" + strings.TrimPrefix(d.resource.Resource, "f") }

func (d definition) all() objects {
	return objects{d.t, "", "CustomResourceDefinition", definitions}
}

// define makes the cluster have the resource, and returns its objects in the namespace.
func (d definition) define(namespace string) objects {
	d.t.Helper()
	crd := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
		"metadata": map[string]any{"name": d.name()},
		"spec": map[string]any{
			"group": d.resource.Group, "scope": "Namespaced",
			"names": map[string]any{"kind": d.kind(), "plural": d.resource.Resource},
			"versions": []any{map[string]any{
				"name": d.resource.Version, "served": true, "storage": true,
				"schema": map[string]any{"openAPIV3Schema": map[string]any{
					"type": "object", "x-kubernetes-preserve-unknown-fields": true,
				}},
			}},
		},
	}}
	if err := manifests.Apply(d.t.Context(), cluster, []manifests.Object{{Unstructured: crd, Source: "the test"}}, nil); err != nil {
		d.t.Fatal(err)
	}
	return objects{d.t, namespace, d.kind(), d.resource}
}

// remove takes the resource, and with it all its objects, out of the cluster.
func (d definition) remove() {
	d.t.Helper()
	d.all().delete(d.name())
	kit.Await(d.t, d.name()+" is gone", func() bool { return d.all().get(d.name()) == nil })
}
