package kube

import (
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

func TestClientsOfUsersShareTheLimit(t *testing.T) {
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
