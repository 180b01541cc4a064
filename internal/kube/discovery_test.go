package kube

import (
	"errors"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/kind"
)

// documents responds by path, with 404 for other paths.
func documents(docs map[string]scripted) scripted {
	return func(req *http.Request) (*http.Response, error) {
		path := strings.TrimPrefix(req.URL.Path, "/base")
		if a := docs[path]; a != nil {
			return a(req)
		}
		return refusal(404, "NotFound")(req)
	}
}

var (
	wantPods = kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Singular: "pod", ShortNames: []string{"po"}, Categories: []string{"all"},
		Namespaced: true, Preferred: true, Subresources: []string{"status", "log"}, Verbs: []string{"list", "watch"}}
	wantOld = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "things", Kind: "Thing", Singular: "thing", Preferred: false, Verbs: []string{"get"}}
	wantNew = kind.Info{Group: "kopf.dev", Version: "v2", Plural: "things", Kind: "Thing", Singular: "thingy", Preferred: true, Verbs: []string{"get"}}
)

func aggregated() map[string]scripted {
	return map[string]scripted{
		"/api": ok(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[{"metadata":{},"versions":[{"version":"v1","resources":[
			{"resource":"pods","responseKind":{"kind":"Pod"},"scope":"Namespaced","singularResource":"","verbs":["list","watch"],"shortNames":["po"],"categories":["all"],
			 "subresources":[{"subresource":"status"},{"subresource":"log"}]},
			{"resource":"ghosts","scope":"Cluster","subresources":[{"subresource":"x"}]}]}]}]}`),
		"/apis": ok(`{"kind":"APIGroupDiscoveryList","apiVersion":"apidiscovery.k8s.io/v2","items":[
			{"metadata":{"name":"kopf.dev"},"versions":[
				{"version":"v2","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","singularResource":"thingy","verbs":["get"]}]},
				{"version":"v1","resources":[{"resource":"things","responseKind":{"kind":"Thing"},"scope":"Cluster","verbs":["get"]}]}]},
			{"metadata":{"name":"broken.dev"},"versions":[{"version":"v1","freshness":"Stale"}]}]}`),
	}
}

func legacy() map[string]scripted {
	return map[string]scripted{
		"/api": ok(`{"kind":"APIVersions","versions":["v1"]}`),
		"/api/v1": ok(`{"kind":"APIResourceList","groupVersion":"v1","resources":[
			{"name":"pods/status","kind":"Pod","namespaced":true,"verbs":["get"]},
			{"name":"pods","kind":"Pod","singularName":"","namespaced":true,"verbs":["list","watch"],"shortNames":["po"],"categories":["all"]},
			{"name":"pods/log","kind":"Pod","namespaced":true,"verbs":["get"]},
			{"name":"ghosts/x","kind":"Ghost"}]}`),
		"/apis": ok(`{"kind":"APIGroupList","groups":[
			{"name":"kopf.dev","versions":[{"groupVersion":"kopf.dev/v2","version":"v2"},{"groupVersion":"kopf.dev/v1","version":"v1"}],"preferredVersion":{"version":"v2"}},
			{"name":"gone.dev","versions":[{"groupVersion":"gone.dev/v1","version":"v1"}],"preferredVersion":{"version":"v1"}},
			{"name":"broken.dev","versions":[{"groupVersion":"broken.dev/v1","version":"v1"}],"preferredVersion":{"version":"v1"}}]}`),
		"/apis/kopf.dev/v1":   ok(`{"resources":[{"name":"things","kind":"Thing","verbs":["get"]}]}`),
		"/apis/kopf.dev/v2":   ok(`{"resources":[{"name":"things","kind":"Thing","singularName":"thingy","verbs":["get"]}]}`),
		"/apis/broken.dev/v1": refusal(503, "ServiceUnavailable"),
	}
}

func TestDiscovery(t *testing.T) {
	broken := schema.GroupVersion{Group: "broken.dev", Version: "v1"}
	cases := map[string]struct {
		documents map[string]scripted
		groups    []string
		want      []kind.Info
		failed    bool
	}{
		"aggregated":             {documents: aggregated(), want: []kind.Info{wantPods, wantOld, wantNew}, failed: true},
		"aggregated, core":       {documents: aggregated(), groups: []string{""}, want: []kind.Info{wantPods}},
		"aggregated, one group":  {documents: aggregated(), groups: []string{"kopf.dev"}, want: []kind.Info{wantOld, wantNew}},
		"legacy":                 {documents: legacy(), want: []kind.Info{wantPods, wantOld, wantNew}, failed: true},
		"legacy, one group":      {documents: legacy(), groups: []string{"kopf.dev"}, want: []kind.Info{wantOld, wantNew}},
		"legacy, a broken group": {documents: legacy(), groups: []string{"broken.dev"}, failed: true},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { // the broken group is retried
				client, _ := answers(documents(c.documents)).client(t)
				got, err := client.Discover(t.Context(), c.groups...)
				if err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff(c.want, got.Resources); diff != "" {
					t.Errorf("resources: -want +got\n%s", diff)
				}
				if (got.Failed[broken] != nil) != c.failed || len(got.Failed) > 1 {
					t.Errorf("failed: got %v", got.Failed)
				}
			})
		})
	}
}

func TestDiscoveryFailsAsAWhole(t *testing.T) {
	client, _ := answers(documents(map[string]scripted{"/api": legacy()["/api"], "/api/v1": legacy()["/api/v1"], "/apis": refusal(403, "Forbidden")})).client(t)
	if d, err := client.Discover(t.Context()); err == nil || err.Error() != "discover /apis: no way" {
		t.Errorf("got %v, %v", d, err)
	}
}

func TestVersion(t *testing.T) {
	client, _ := answers(documents(map[string]scripted{"/version": ok(`{"gitVersion":"v1.37.1"}`)})).client(t)
	if v, err := client.Version(t.Context()); err != nil || v.GitVersion != "v1.37.1" {
		t.Errorf("got %v, %v", v, err)
	}
}

// A group whose server hangs, or returns only 401 or 503, does not delay the others.
func TestABrokenGroupDelaysDiscoveryByOnlyAFewSeconds(t *testing.T) {
	for name, broken := range map[string]scripted{
		"silent": never, "unauthorized": refusal(401, "Unauthorized"), "unavailable": refusal(503, "ServiceUnavailable"),
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				cluster := roundTripper(func(req *http.Request) (*http.Response, error) {
					switch strings.TrimPrefix(req.URL.Path, "/base") {
					case "/apis":
						return ok(`{"kind":"APIGroupList","groups":[
							{"name":"a.dev","versions":[{"groupVersion":"a.dev/v1","version":"v1"}]},
							{"name":"b.dev","versions":[{"groupVersion":"b.dev/v1","version":"v1"}]}]}`)(req)
					case "/apis/a.dev/v1":
						return ok(`{"resources":[{"name":"apples","kind":"Apple","verbs":["list"]}]}`)(req)
					case "/apis/b.dev/v1":
						return broken(req)
					}
					return ok(`{}`)(req)
				})
				c, err := NewClient(&rest.Config{Host: "https://server/base/", Transport: cluster}, DefaultOptions())
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				got, err := c.Discover(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				if len(got.Resources) != 1 || len(got.Failed) != 1 {
					t.Errorf("got %v", got)
				}
				if took := time.Since(began); took > 5*time.Second {
					t.Errorf("it took %v", took)
				}
			})
		})
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(req *http.Request) (*http.Response, error) { return f(req) }

func TestDocumentsAreReadAsTheyArrive(t *testing.T) {
	c, _ := (&fake{script: []scripted{documents(map[string]scripted{"/openapi/v3": ok("text")})}}).client(t)
	var text []byte
	err := c.Document(t.Context(), "/openapi/v3", func(r io.Reader) (err error) {
		text, err = io.ReadAll(r)
		return err
	})
	if err != nil || string(text) != "text" {
		t.Errorf("got %q, %v", text, err)
	}
	mine, calls := errors.New("mine"), 0
	err = c.Document(t.Context(), "/openapi/v3", func(io.Reader) error { calls++; return mine })
	if !errors.Is(err, mine) || calls != 1 {
		t.Errorf("got %v after %d calls", err, calls)
	}
	err = c.Document(t.Context(), "/openapi/v2", func(io.Reader) error { return mine })
	if !apierrors.IsNotFound(err) {
		t.Errorf("got %v", err)
	}
}
