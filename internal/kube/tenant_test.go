package kube

import (
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// A disruption budget refuses evictions with 429. That says nothing about the load of the
// server, so requests of other tenants are not slowed down.
func TestRefusedEvictionsDoNotReduceTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answers(func(req *http.Request) (*http.Response, error) {
			return reply(429, `{"kind":"Status","status":"Failure","code":429,"reason":"TooManyRequests","details":{"retryAfterSeconds":1}}`)(req)
		})
		client, _ := f.client(t)
		theirs, err := rest.HTTPClientFor(client.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		post := func(path string) {
			req, _ := http.NewRequest(http.MethodPost, "https://server"+path, strings.NewReader("{}"))
			resp, err := theirs.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
		}
		before, _, _ := client.Load()
		for range 5 {
			post("/api/v1/namespaces/a/pods/a/eviction")
		}
		if now, _, _ := client.Load(); now != before {
			t.Errorf("after refused evictions, the limit is %v instead of %v", now, before)
		}
		post("/api/v1/namespaces/a/pods")
		if now, _, _ := client.Load(); now >= before {
			t.Errorf("after an overload, the limit is still %v", now)
		}
	})
}

// Handlers of one tenant read a namespace that those of all tenants read. Their requests count
// for the tenant, so they do not occupy what others need to read the same namespace.
func TestRequestsCountForTheNamespaceOfTheHandledObject(t *testing.T) {
	for name, other := range map[string]func(t *testing.T, client *Client) (get func(namespace string) error){
		"of this client": func(t *testing.T, client *Client) func(string) error {
			return func(namespace string) error {
				_, err := client.Get(For(t.Context(), namespace), Target{Info: pods, Namespace: "shared", Name: "a"})
				return err
			}
		},
		"of another client": func(t *testing.T, client *Client) func(string) error {
			theirs, err := rest.HTTPClientFor(client.RESTConfig())
			if err != nil {
				t.Fatal(err)
			}
			return func(namespace string) error {
				req, _ := http.NewRequestWithContext(For(t.Context(), namespace), http.MethodGet, "https://server/api/v1/namespaces/shared/pods/a", nil)
				resp, err := theirs.Do(req)
				if err == nil {
					resp.Body.Close()
				}
				return err
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := answers(func(req *http.Request) (*http.Response, error) {
					time.Sleep(time.Second)
					return ok(onePod)(req)
				})
				client, _ := f.client(t, func(o *Options) { o.InFlight = InFlight{Start: 4, Min: 4, Max: 4} })
				get := other(t, client)
				var all sync.WaitGroup
				for range 100 {
					all.Go(func() {
						if err := get("many"); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				began := time.Now()
				if err := get("one"); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != time.Second {
					t.Errorf("the request of another tenant took %s", took)
				}
				for range 100 { // of handlers in the namespace that is read
					all.Go(func() {
						if err := get("shared"); err != nil {
							t.Error(err)
						}
					})
				}
				synctest.Wait()
				began = time.Now()
				if err := get(""); err != nil { // of a cluster-scoped object
					t.Error(err)
				}
				if took := time.Since(began); took > 3*time.Second {
					t.Errorf("the request of a cluster-scoped object took %s", took)
				}
				all.Wait()
			})
		})
	}
	for got, want := range map[string]string{
		tenantOf(For(t.Context(), ""), "target"):  clusterScoped,
		tenantOf(For(t.Context(), "ns"), "other"): "ns",
		tenantOf(t.Context(), "target"):           "target",
	} {
		if got != want {
			t.Errorf("got the tenant %q, want %q", got, want)
		}
	}
}
