package kube

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/kind"
)

func TestDryRunsAreForAllWritesAndNoReads(t *testing.T) {
	var mu sync.Mutex
	var seen []string
	f := answers(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		seen = append(seen, req.Method+" "+req.URL.RawQuery)
		return ok(onePod)(req)
	})
	client, _ := f.client(t)
	client = client.Derive(func(o *Options) { o.DryRun = true })
	pod := Target{Info: kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, Namespace: "default", Name: "a"}
	_, _ = client.Get(t.Context(), pod)
	_, _ = client.Patch(t.Context(), pod, types.MergePatchType, []byte("{}"), FieldManager("me"))
	_ = client.Delete(t.Context(), pod, DeleteOptions{})
	theirs, err := rest.HTTPClientFor(client.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}
	for _, method := range []string{http.MethodGet, http.MethodPost} {
		req, err := http.NewRequestWithContext(t.Context(), method, "https://server/api/v1/pods?x=y", strings.NewReader("{}"))
		if err != nil {
			t.Fatal(err)
		}
		response, err := theirs.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		_ = response.Body.Close()
	}
	want := []string{"GET ", "PATCH dryRun=All&fieldManager=me", "DELETE dryRun=All", "GET x=y", "POST dryRun=All&x=y"}
	if !slices.Equal(seen, want) {
		t.Errorf("got %q, want %q", seen, want)
	}
}
