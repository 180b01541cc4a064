package e2e

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/test/e2e/kit"
)

// websitesHaveChildrenAndAreRegistered runs the example for children through the life of
// a website.
func websitesHaveChildrenAndAreRegistered(t *testing.T, executable string) {
	var mu sync.Mutex
	var calls []string
	registry := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		if !slices.Contains(calls, r.Method) {
			calls = append(calls, r.Method)
		}
	}))
	t.Cleanup(registry.Close)
	apply(t, "../../../examples/18-website/deploy/crd.yaml")
	ns := namespace(t)
	in := func(kind, group, plural string) objects {
		return objects{t, ns, kind, schema.GroupVersionResource{Group: group, Version: "v1", Resource: plural}}
	}
	sites, maps := in("Website", "gopf.dev", "websites"), in("ConfigMap", "", "configmaps")
	deployments, services := in("Deployment", "apps", "deployments"), in("Service", "", "services")
	p := start(t, executable, []string{"REGISTRY=" + registry.URL}, "run", "--namespace", ns, "--standalone", "--verbose")
	sites.create("hello", map[string]any{"spec": map[string]any{"page": "<h1>Hello!</h1>"}})
	ready := func() string {
		site := sites.get("hello")
		if site == nil {
			return "gone"
		}
		list, _, _ := unstructured.NestedSlice(site.Object, "status", "conditions")
		for _, c := range list {
			if m := c.(map[string]any); m["type"] == "Ready" {
				return m["status"].(string)
			}
		}
		return ""
	}
	kit.Await(t, "the website has a page and is not ready", func() bool {
		return maps.get("hello") != nil && deployments.get("hello") != nil && ready() == "False"
	})
	if services.get("hello") != nil {
		t.Error("the Service exists, although the Deployment is not ready")
	}
	kit.Await(t, "the website is ready when its pods are", func() bool {
		deployments.mergeStatus("hello", `{"status": {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1, "availableReplicas": 1}}`)
		return ready() == "True" && services.get("hello") != nil
	})

	// The program has another name in an image: its field manager must not depend on it.
	p.end(t)
	children := []objects{maps, deployments, services}
	applied := func(of objects) (all []string) {
		for _, e := range of.get("hello").GetManagedFields() {
			if e.Operation == "Apply" {
				all = append(all, fmt.Sprint(e.Manager, " ", e.Time, " ", e.FieldsV1))
			}
		}
		return all
	}
	before := [][]string{applied(maps), applied(deployments)}
	renamed := filepath.Join(t.TempDir(), "renamed")
	program, err := os.ReadFile(executable)
	if err == nil {
		err = os.WriteFile(renamed, program, 0o700)
	}
	if err != nil {
		t.Fatal(err)
	}
	p = start(t, renamed, []string{"REGISTRY=" + registry.URL}, "run", "--namespace", ns, "--standalone", "--verbose")
	p.Log.WaitFor(t, "Handler 'children' is invoked.")
	services.delete("hello")
	kit.Await(t, "the deleted Service is back", func() bool { return services.get("hello") != nil })
	for i, of := range children {
		got := applied(of)
		if len(got) != 1 || !strings.HasPrefix(got[0], "websites.gopf.dev ") {
			t.Errorf("the %s was applied by %q", of.kind, got)
		}
		if of != services && !slices.Equal(got, before[i]) { // the Service was deleted
			t.Errorf("the renamed program applied the %s again", of.kind)
		}
	}
	sites.delete("hello")
	kit.Await(t, "the website is gone with its children", func() bool {
		return ready() == "gone" && services.get("hello") == nil && deployments.get("hello") == nil && maps.get("hello") == nil
	})
	mu.Lock()
	defer mu.Unlock()
	if want := []string{http.MethodPut, http.MethodDelete}; !slices.Equal(calls, want) {
		t.Errorf("the registry got %q, want %q", calls, want)
	}
	p.end(t)
}
