package gopftest

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"testing"
	"testing/synctest"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
)

const examples = "kopf.dev/v1/kopfexamples"

// inBubble runs a test in virtual time on a cluster that serves examples.
func inBubble(t *testing.T, test func(t *testing.T, c *Cluster)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		test(t, NewCluster(t, examples))
	})
}

func example(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": map[string]any{"name": name, "namespace": "default"},
		"spec":     map[string]any{"field": "value"},
	}}
}

// client returns the dynamic client for examples in the default namespace.
func client(t *testing.T, c *Cluster) dynamic.ResourceInterface {
	t.Helper()
	return everywhere(t, c).Namespace("default")
}

// everywhere returns the dynamic client for examples in all namespaces.
func everywhere(t *testing.T, c *Cluster) dynamic.NamespaceableResourceInterface {
	t.Helper()
	d, err := dynamic.NewForConfig(c.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	return d.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"})
}

func mergePatch(ctx context.Context, c dynamic.ResourceInterface, name, patch string, sub ...string) (*unstructured.Unstructured, error) {
	return c.Patch(ctx, name, types.MergePatchType, []byte(patch), metav1.PatchOptions{}, sub...)
}

// follow reads a raw watch in the background. The channel is closed at the end of the
// watch; the last line is the error.
func follow(t *testing.T, c *Cluster, query string) <-chan string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet,
		"https://cluster.test/apis/kopf.dev/v1/namespaces/default/kopfexamples?watch=true&"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Transport().RoundTrip(req)
	if err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1000)
	go func() {
		defer close(lines)
		defer resp.Body.Close()
		r := bufio.NewReader(resp.Body)
		for {
			line, err := r.ReadString('\n')
			if line != "" {
				lines <- summary(line)
			}
			if err != nil {
				if err != io.EOF {
					lines <- err.Error()
				}
				return
			}
		}
	}()
	return lines
}

// summary shortens a line of a watch to a few words.
func summary(line string) string {
	var ev struct {
		Type   string
		Object struct {
			Metadata struct{ Name string }
			Spec     struct{ Field string }
			Reason   string
		}
	}
	if err := json.Unmarshal([]byte(line), &ev); err != nil {
		return "broken"
	}
	switch ev.Type {
	case "BOOKMARK":
		return ev.Type
	case "ERROR":
		return ev.Type + " " + ev.Object.Reason
	}
	return ev.Type + " " + ev.Object.Metadata.Name + " " + ev.Object.Spec.Field
}

// drain returns all lines received so far.
func drain(lines <-chan string) []string {
	synctest.Wait()
	got := []string{}
	for {
		select {
		case line, ok := <-lines:
			if !ok {
				return append(got, "end")
			}
			got = append(got, line)
		default:
			return got
		}
	}
}

// now returns a version from which a watch receives all later changes.
func now(c *Cluster) string { return "resourceVersion=" + itoa(c.store.current()) }

func itoa(n int64) string { b, _ := json.Marshal(n); return string(b) }
