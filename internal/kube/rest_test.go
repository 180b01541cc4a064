package kube

import (
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

func TestUsersClientsShareTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := answers(func(req *http.Request) (*http.Response, error) {
			if ua := req.Header.Get("User-Agent"); ua != "me/1" {
				t.Errorf("user agent: got %q", ua)
			}
			time.Sleep(time.Second)
			return ok(onePod)(req)
		})
		client, _ := f.client(t, func(o *Options) {
			o.UserAgent = "me/1"
			o.InFlight = InFlight{Start: 2, Min: 1, Max: 2}
		})
		theirs, err := rest.HTTPClientFor(client.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		started := time.Now()
		var all sync.WaitGroup
		for range 3 {
			all.Go(func() {
				if _, err := theirs.Get("https://server/api/v1/pods"); err != nil {
					t.Error(err)
				}
			})
			all.Go(func() {
				if err := get(t.Context(), client); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if took := time.Since(started); took != 3*time.Second {
			t.Errorf("six requests by two took %v", took)
		}
		if _, err := theirs.Get("https://server/api/v1/pods?watch=true"); err != nil {
			t.Error(err)
		}
	})
}

// tokens returns 401 to all requests without one of the tokens.
func tokens(accepted ...string) (*fake, func(...string)) {
	var mu sync.Mutex
	f := answers(func(req *http.Request) (*http.Response, error) {
		mu.Lock()
		defer mu.Unlock()
		if slices.Contains(accepted, strings.TrimPrefix(req.Header.Get("Authorization"), "Bearer ")) {
			return ok(onePod)(req)
		}
		return refusal(401, "Unauthorized")(req)
	})
	return f, func(others ...string) {
		mu.Lock()
		defer mu.Unlock()
		accepted = others
	}
}

func TestUsersClientsFollowTheCredentials(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, accept := tokens("old")
		client, err := NewClient(&rest.Config{Host: "https://server/base", BearerToken: "old", Transport: f}, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		theirs, err := rest.HTTPClientFor(client.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		post := func() int {
			resp, err := theirs.Post("https://server/base/api/v1/pods", "application/json", strings.NewReader(`{"a":1}`))
			if err != nil {
				t.Fatal(err)
			}
			resp.Body.Close()
			return resp.StatusCode
		}
		if code := post(); code != http.StatusOK {
			t.Errorf("got %d", code)
		}
		accept("new")
		started := time.Now()
		time.AfterFunc(time.Minute, func() {
			if err := client.Use(&rest.Config{Host: "https://other/", BearerToken: "new", Transport: f}); err != nil {
				t.Error(err)
			}
		})
		if code := post(); code != http.StatusOK || time.Since(started) != time.Minute {
			t.Errorf("got %d after %v", code, time.Since(started))
		}
		if code := post(); code != http.StatusOK {
			t.Errorf("got %d", code)
		}
		last := len(f.requests) - 1
		if !strings.HasSuffix(f.requests[last], "POST /api/v1/pods") || f.bodies[last] != `{"a":1}` {
			t.Errorf("the last request was %s with %s", f.requests[last], f.bodies[last])
		}
	})
}

func TestCredentialsSetByUsersAreKept(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, _ := tokens("ours")
		client, err := NewClient(&rest.Config{Host: "https://server", BearerToken: "ours", Transport: f}, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		cfg := client.RESTConfig()
		cfg.BearerToken = "theirs"
		theirs, err := rest.HTTPClientFor(cfg)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := theirs.Get("https://server/api")
		if err != nil || resp.StatusCode != http.StatusUnauthorized || len(f.requests) != 1 {
			t.Errorf("got %v, %v with the requests %q", resp, err, f.requests)
		}
	})
}
