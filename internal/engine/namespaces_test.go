package engine

import (
	"context"
	"io"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// emptyCluster serves resources without objects. It records the paths of all requests,
// except for access reviews.
type emptyCluster struct {
	mu    sync.Mutex
	paths map[string]bool
}

func (c *emptyCluster) RoundTrip(r *http.Request) (*http.Response, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	text, code := `{"metadata":{"resourceVersion":"1"},"items":[]}`, http.StatusOK
	if strings.HasSuffix(r.URL.Path, "reviews") { // access reviews
		text = `{"status":{"allowed":true}}`
	} else {
		c.paths[r.URL.Path] = true
	}
	switch {
	case r.URL.Path == "/api":
		text = `{"versions":["v1"]}`
	case r.URL.Path == "/apis":
		text = `{"groups":[{"name":"apiextensions.k8s.io","versions":[{"version":"v1"}],"preferredVersion":{"version":"v1"}}]}`
	case r.URL.Path == "/api/v1":
		text = `{"resources":[{"name":"pods","kind":"Pod","namespaced":true,"verbs":["list","watch"]},{"name":"namespaces","kind":"Namespace","verbs":["list","watch"]}]}`
	case r.URL.Path == "/apis/apiextensions.k8s.io/v1":
		text = `{"resources":[{"name":"customresourcedefinitions","kind":"CustomResourceDefinition","verbs":["list","watch"]}]}`
	case r.URL.Query().Has("sendInitialEvents"):
		code = 422
	case r.URL.Query().Has("watch"):
		reader, writer := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = writer.Close() }) // Close of a pipe never fails
		return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: reader, Request: r}, nil
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(text)), Request: r}, nil
}

// asked returns the sorted paths that an operator of pods requests.
func asked(t *testing.T, c Config) (paths []string) {
	synctest.Test(t, func(t *testing.T) {
		cluster := &emptyCluster{paths: map[string]bool{}}
		c.Login = login.Fixed(&rest.Config{Host: "http://cluster", Transport: cluster}, "")
		c.Peering.Standalone = true
		c.Handlers = handler.Set{{ID: "look", Family: handler.Events, Of: kind.Named("pods")}}
		c.Log = slog.New(slog.DiscardHandler)
		c.Kube, c.Stream = kube.DefaultOptions(), stream.DefaultConfig(kind.Info{}, "")
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		if err := Run(ctx, c); err != nil {
			t.Error(err)
		}
		paths = slices.Sorted(maps.Keys(cluster.paths))
	})
	return paths
}

func TestOperatorRequestsOnlyThePathsItNeeds(t *testing.T) {
	discovered := []string{"/api", "/api/v1", "/apis", "/apis/apiextensions.k8s.io/v1"}
	definitions := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	for name, c := range map[string]struct {
		config Config
		want   []string
	}{
		"disabled":     {Config{ScanningDisabled: true, Namespaces: discovery.Namespaces{discovery.Globs("a")}}, []string{"/api/v1/namespaces/a/pods"}},
		"disabled all": {Config{ScanningDisabled: true}, []string{"/api/v1/pods"}},
		"plain names":  {Config{Namespaces: discovery.Namespaces{discovery.Globs("a")}}, []string{"/api/v1/namespaces/a", "/api/v1/namespaces/a/pods", definitions}},
		"patterns":     {Config{Namespaces: discovery.Namespaces{discovery.Globs("a*")}}, []string{"/api/v1/namespaces", definitions}},
	} {
		want := slices.Sorted(slices.Values(slices.Concat(discovered, c.want)))
		if diff := cmp.Diff(want, asked(t, c.config)); diff != "" {
			t.Errorf("%s: -want +got\n%s", name, diff)
		}
	}
}

func TestNamespacePatternsFailWithoutScanning(t *testing.T) {
	err := Run(t.Context(), Config{ScanningDisabled: true, Namespaces: discovery.Namespaces{discovery.Globs("a*")}})
	if err == nil || !strings.Contains(err.Error(), `"a*"`) {
		t.Errorf("got %v", err)
	}
}
