package manifests

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/dev/controlplane"
)

// cluster is the control plane for the tests of this package.
var cluster *rest.Config

func TestMain(m *testing.M) {
	kubeconfig, stop, err := controlplane.ForTests(os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	if cluster, err = clientcmd.BuildConfigFromFlags("", kubeconfig); err != nil {
		fmt.Fprintln(os.Stderr, err)
		stop()
		os.Exit(1)
	}
	code := m.Run()
	stop()
	os.Exit(code)
}

// Every object depends on a later one in the file.
const manifest = `
apiVersion: manifests.test/v2
kind: Fruit
metadata: {name: apple, namespace: manifests-test}
spec: {color: red}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: manifests-test}
data: {key: value}
---
apiVersion: v1
kind: Namespace
metadata: {name: manifests-test}
---
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: fruits.manifests.test}
spec:
  group: manifests.test
  scope: Namespaced
  names: {kind: Fruit, plural: fruits, singular: fruit}
  versions:
  - {name: v1, served: true, storage: false, schema: &any {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}
  - {name: v2, served: true, storage: true, schema: *any}
`

func TestApplySortsTheObjects(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "all.yaml", manifest)
	objects, err := Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	client := dynamic.NewForConfigOrDie(cluster)
	crds := client.Resource(schema.GroupVersionResource{Group: "apiextensions.k8s.io", Version: "v1", Resource: "customresourcedefinitions"})
	fruits := client.Resource(schema.GroupVersionResource{Group: "manifests.test", Version: "v1", Resource: "fruits"}).Namespace("manifests-test")
	t.Cleanup(func() {
		if err := crds.Delete(context.WithoutCancel(t.Context()), "fruits.manifests.test", metav1.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})

	for _, color := range []string{"red", "green"} { // the second time is an update
		if err := unstructured.SetNestedField(objects[0].Object, color, "spec", "color"); err != nil {
			t.Fatal(err)
		}
		var order []string
		if err := Apply(t.Context(), cluster, objects, func(o Object) { order = append(order, o.String()) }); err != nil {
			t.Fatal(err)
		}
		want := []string{
			"CustomResourceDefinition fruits.manifests.test", "Namespace manifests-test",
			"Fruit manifests-test/apple", "ConfigMap manifests-test",
		}
		if diff := cmp.Diff(want, order); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		apple, err := fruits.Get(t.Context(), "apple", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		if got, _, _ := unstructured.NestedString(apple.Object, "spec", "color"); got != color {
			t.Errorf("got %q, want %q", got, color)
		}
		if manager := apple.GetManagedFields()[0].Manager; manager != "gopf" {
			t.Errorf("got field manager %q", manager)
		}
	}
}

func TestErrorsOfApplyNameTheObject(t *testing.T) {
	cases := map[string]struct {
		text string
		want []string
	}{
		"unknown kind": {
			"{apiVersion: v1, kind: Confmap, metadata: {name: a}}",
			[]string{"apply Confmap a from ", "bad.yaml: the cluster does not serve the kind Confmap in v1"},
		},
		"unknown group": {
			"{apiVersion: none.test/v1, kind: None, metadata: {name: a}}",
			[]string{"the cluster does not serve the kind None in none.test/v1", "also apply its CustomResourceDefinition"},
		},
		"namespace on a cluster-wide object": {
			"{apiVersion: v1, kind: Namespace, metadata: {name: a, namespace: b}}",
			[]string{`metadata.namespace is "b", but the kind Namespace is cluster-scoped`},
		},
		"rejected by the server": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: A_B}}",
			[]string{"apply ConfigMap A_B from ", "Invalid value"},
		},
		"missing namespace": {
			"{apiVersion: v1, kind: ConfigMap, metadata: {name: a, namespace: none}}",
			[]string{"apply ConfigMap none/a from ", `namespaces "none" not found`},
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "bad.yaml", c.text)
			objects, err := Read(dir)
			if err != nil {
				t.Fatal(err)
			}
			err = Apply(t.Context(), cluster, objects, nil)
			for _, want := range c.want {
				if err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("got %v, want %q", err, want)
				}
			}
		})
	}
}
