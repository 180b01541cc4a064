package e2e

import (
	"context"
	"strings"
	"syscall"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/controlplane"
	"gopf.dev/gopf/internal/e2e/kit"
	"gopf.dev/gopf/internal/manifests"
)

// requestsAreReviewed has a cluster of its own: on the one that all tests share,
// the requests of all would be reviewed.
func requestsAreReviewed(t *testing.T, executable string) {
	ctx := context.WithoutCancel(t.Context())
	plane, err := controlplane.Start(ctx, controlplane.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = plane.Stop() }) // whatever is left of it is none of our business
	config, err := clientcmd.BuildConfigFromFlags("", plane.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	crd, err := manifests.Read("../../examples/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(ctx, config, crd, nil); err != nil {
		t.Fatal(err)
	}
	p := start(t, executable, []string{"KUBECONFIG=" + plane.Kubeconfig()}, "run", "--all-namespaces", "--verbose")
	p.Log.WaitFor(t, "Client is configured")

	objects := dynamic.NewForConfigOrDie(config).Resource(kopfexamples).Namespace("default")
	create := func(name, field string) (*unstructured.Unstructured, error) {
		return objects.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"somelabel": "somevalue"}},
			"spec":     map[string]any{"field": field, "copies": int64(99)},
		}}, metav1.CreateOptions{})
	}
	kit.Await(t, "an unwanted object is refused", func() bool {
		_, err := create("refused", "not-allowed")
		if err == nil { // the cluster does not ask yet
			_ = objects.Delete(ctx, "refused", metav1.DeleteOptions{})
		}
		return err != nil && strings.Contains(err.Error(), "this value is not allowed")
	})
	made, err := create("kopf-example-1", "value")
	if err != nil {
		t.Fatal(err)
	}
	if copies, _, _ := unstructured.NestedInt64(made.Object, "spec", "copies"); copies != 10 {
		t.Errorf("got %d copies, want what the operator puts right", copies)
	}
	p.Log.WaitFor(t, "[default/kopf-example-1] ", "Handler 'create_fn' succeeded")
	p.Log.WaitFor(t, "Received an admission request.", "operation=CREATE")
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	if _, err := create("not-reviewed", "not-allowed"); err != nil {
		t.Errorf("the operator is gone, and still: %v", err)
	}
}
