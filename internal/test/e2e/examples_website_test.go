package e2e

import (
	"net/http"
	"net/http/httptest"
	"slices"
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
	apply(t, "../../../examples/18-website/crd.yaml")
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
	services.delete("hello")
	kit.Await(t, "the deleted Service is back", func() bool { return services.get("hello") != nil })
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
