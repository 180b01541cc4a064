package gopftest_test

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gopf.dev/gopf/gopftest"
)

func standalone(t *testing.T) *httptest.Server {
	t.Helper()
	cluster := gopftest.NewStandalone()
	server := httptest.NewUnstartedServer(cluster.Handler())
	server.EnableHTTP2 = true
	server.StartTLS()
	t.Cleanup(func() { cluster.Close(); server.Close() })
	return server
}

// A standalone cluster serves all well-known kinds, names itself in its version, and answers
// access reviews.
func TestStandaloneClustersServeClients(t *testing.T) {
	server := standalone(t)
	get := func(path string) map[string]any {
		t.Helper()
		response, err := server.Client().Get(server.URL + path)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var body map[string]any
		if err := json.NewDecoder(response.Body).Decode(&body); err != nil || response.StatusCode != http.StatusOK {
			t.Fatalf("GET %s: %d %v", path, response.StatusCode, err)
		}
		return body
	}
	if version, _ := get("/version")["gitVersion"].(string); !strings.HasSuffix(version, "-gopf-in-memory") {
		t.Errorf("got version %q", version)
	}
	get("/apis/apps/v1/deployments")
	get("/api/v1/namespaces/default")
	document := get("/openapi/v3/apis/apps/v1")
	paths, _ := document["paths"].(map[string]any)
	if paths["/apis/apps/v1/namespaces/{namespace}/deployments/{name}"] == nil {
		t.Error("the document has no path of a deployment")
	}
	review := `{"spec":{"resourceAttributes":{"verb":"list","resource":"pods","namespace":"default"}}}`
	for user, want := range map[string]string{"": `"allowed":true`, "eve": `"allowed":false`} {
		request, err := http.NewRequestWithContext(t.Context(), http.MethodPost, server.URL+"/apis/authorization.k8s.io/v1/selfsubjectaccessreviews", strings.NewReader(review))
		if err != nil {
			t.Fatal(err)
		}
		if user != "" {
			request.Header.Set("Impersonate-User", user)
		}
		response, err := server.Client().Do(request)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := io.ReadAll(response.Body)
		response.Body.Close()
		if !strings.Contains(string(text), want) {
			t.Errorf("%q: got %s, want %s", user, text, want)
		}
	}
}

// Clients that disconnect while their watch ends do not crash the server. Over HTTP/2, a
// response must not be used after its handler has returned.
func TestWatchesThatEndDoNotCrashTheServer(t *testing.T) {
	server := standalone(t)
	var clients sync.WaitGroup
	for range 8 {
		clients.Go(func() {
			for range 200 {
				response, err := server.Client().Get(server.URL + "/api/v1/pods?watch=true")
				if err != nil {
					t.Error(err)
					return
				}
				response.Body.Close()
			}
		})
	}
	clients.Wait()
}
