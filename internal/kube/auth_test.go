package kube

import (
	"context"
	"net/http"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

func TestRefusedCredentialsAreTriedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		no := refusal(401, "Unauthorized")
		f := answers(no, no, no, no, no, no, no, ok(onePod))
		var told []bool
		client, log := f.client(t, func(o *Options) {
			o.Unauthorized = func(err error) { told = append(told, err != nil) }
		})
		if err := patchIt(t.Context(), client); err != nil {
			t.Fatal(err)
		}
		want := []string{"0s", "250ms", "750ms", "1.75s", "3.75s", "7.75s", "12.75s", "17.75s"}
		if diff := cmp.Diff(want, f.times()); diff != "" {
			t.Errorf("times: -want +got\n%s", diff)
		}
		if diff := cmp.Diff([]bool{true, false}, told); diff != "" {
			t.Errorf("told: -want +got\n%s", diff)
		}
		if len(log.lines) != 2 {
			t.Errorf("log: got %q, want a line for the beginning and one for the end", log.lines)
		}
	})
}

func TestRefusedCredentialsAreSaidOnceForAllRequests(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		started := time.Now()
		f := answers(func(req *http.Request) (*http.Response, error) {
			if time.Since(started) < time.Minute {
				return refusal(401, "Unauthorized")(req)
			}
			return ok(onePod)(req)
		})
		client, log := f.client(t)
		var all sync.WaitGroup
		for i := range 20 {
			all.Go(func() {
				time.Sleep(time.Duration(i) * time.Second)
				if err := patchIt(t.Context(), client); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if len(log.lines) != 2 {
			t.Errorf("log: got %q", log.lines)
		}
	})
}

func TestNewCredentialsAreUsedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		client, _ := answers(refusal(401, "Unauthorized")).client(t)
		fresh := answers(ok(onePod))
		fresh.started = time.Now()
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		go func() {
			time.Sleep(30 * time.Second)
			if err := client.Use(&rest.Config{Host: "https://server", BearerToken: "new", Transport: fresh}); err != nil {
				t.Error(err)
			}
		}()
		if err := get(ctx, client); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff([]string{"30s"}, fresh.times()); diff != "" {
			t.Errorf("times: -want +got\n%s", diff)
		}
	})
}
