package e2e

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/tools/clientcmd"

	"gopf.dev/gopf/internal/dev/controlplane"
	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/test/e2e/kit"
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
	crd, err := manifests.Read("../../../examples/crd.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := manifests.Apply(ctx, config, crd, nil); err != nil {
		t.Fatal(err)
	}
	p := start(t, executable, []string{"KUBECONFIG=" + plane.Kubeconfig()}, "run", "--all-namespaces", "--verbose")
	p.Log.WaitFor(t, "Client is configured")

	warned := &warnings{}
	config.WarningHandler = warned
	objects := dynamic.NewForConfigOrDie(config).Resource(kopfexamples).Namespace("default")
	create := func(name, field string, dryRun ...string) (*unstructured.Unstructured, error) {
		return objects.Create(ctx, &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
			"metadata": map[string]any{"name": name, "labels": map[string]any{"somelabel": "somevalue"}},
			"spec":     map[string]any{"field": field, "copies": int64(99)},
		}}, metav1.CreateOptions{DryRun: dryRun})
	}
	kit.Await(t, "an unwanted object is refused", func() bool {
		_, err := create("refused", "not-allowed")
		if err == nil { // the cluster does not ask yet
			_ = objects.Delete(ctx, "refused", metav1.DeleteOptions{})
		}
		if err == nil || !strings.Contains(err.Error(), "this value is not allowed") {
			return false
		}
		if status, ok := errors.AsType[*apierrors.StatusError](err); !ok || status.ErrStatus.Code != 555 {
			t.Errorf("got %v, want the code of the handler", err)
		}
		return true
	})
	if _, err := create("refused", "wrong"); err == nil || !strings.Contains(err.Error(), "this field is wrong") {
		t.Errorf("got %v, want a refusal", err)
	}
	if _, err := create("refused", "wrong", metav1.DryRunAll); err != nil {
		t.Errorf("a dry run is refused: %v", err)
	}
	kit.Await(t, "the cluster knows both configurations", func() bool {
		tried, err := create("mutated", "value", metav1.DryRunAll)
		if err != nil {
			t.Fatal(err)
		}
		_, injected, _ := unstructured.NestedInt64(tried.Object, "spec", "injected")
		return injected
	})
	made, err := create("kopf-example-1", "value")
	if err != nil {
		t.Fatal(err)
	}
	if copies, _, _ := unstructured.NestedInt64(made.Object, "spec", "copies"); copies != 10 {
		t.Errorf("got %d copies, want what the operator puts right", copies)
	}
	if injected, _, _ := unstructured.NestedInt64(made.Object, "spec", "injected"); injected != 123 {
		t.Errorf("the operator injected %d", injected)
	}
	for _, text := range []string{
		"kopf-example-1 is only an example", "The user agent of the API server is kube-apiserver-admission",
		"The API server has shown no certificate", "10 copies are enough",
	} {
		if !warned.has(text) {
			t.Errorf("there is no warning %q", text)
		}
	}
	for value, accepted := range map[string]bool{"value": true, "other": false} {
		patch := []byte(`{"status": {"field": "` + value + `"}}`)
		_, err := objects.Patch(ctx, "kopf-example-1", types.MergePatchType, patch, metav1.PatchOptions{}, "status")
		if (err == nil) != accepted {
			t.Errorf("status.field %q: %v", value, err)
		}
	}
	if _, err := objects.Patch(ctx, "kopf-example-1", types.MergePatchType, []byte(`{"spec": {"field": "new"}}`), metav1.PatchOptions{}); err != nil {
		t.Error(err)
	}
	if !warned.has(`Update status.field as well: it is "value"`) {
		t.Error("there is no warning about the status")
	}
	p.Log.WaitFor(t, "[default/kopf-example-1] ", "Handler 'create_fn' succeeded")
	p.Log.WaitFor(t, "Received an admission request.", "operation=CREATE")
	p.Signal(syscall.SIGINT)
	if code := p.Wait(); code != 0 {
		t.Errorf("got exit code %d", code)
	}
	kit.Eventually(t, func() error { // the API server notices removed configurations later
		_, err := create("not-reviewed", "not-allowed")
		return err
	})
}

// warnings collects those that kubectl would print.
type warnings struct {
	mu  sync.Mutex
	all []string
}

func (w *warnings) HandleWarningHeader(_ int, _, text string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.all = append(w.all, text)
}

func (w *warnings) has(text string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return slices.Contains(w.all, text)
}
