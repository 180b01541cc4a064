package kube

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"
)

// The token is revoked repeatedly while requests of all kinds are sent. None may fail,
// and no watch may outlive its token.
func TestCredentialsAreReplacedUnderLoad(t *testing.T) {
	var mu sync.Mutex
	valid := "0"
	cfg := serve(t, func(w http.ResponseWriter, r *http.Request) {
		mu.Lock()
		ok := r.Header.Get("Authorization") == "Bearer "+valid
		mu.Unlock()
		switch {
		case !ok:
			// As of API servers, it has a body. Connections are idle before net/http passes a
			// response without one, and the request fails if they are closed at that moment.
			http.Error(w, "no", http.StatusUnauthorized)
		case r.URL.Query().Has("watch"):
			w.(http.Flusher).Flush()
			<-r.Context().Done()
		default:
			io.Copy(w, io.MultiReader(strings.NewReader(onePod), r.Body))
		}
	})
	cfg.BearerToken = valid
	o := DefaultOptions()
	o.Log = quiet
	told := make(chan *rest.Config, 1000)
	o.Unauthorized = func(cfg *rest.Config, err error) {
		if err != nil {
			told <- cfg
		}
	}
	client, err := NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	theirs, err := rest.HTTPClientFor(client.RESTConfig())
	if err != nil {
		t.Fatal(err)
	}

	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	repeat := func(do func() error) {
		all.Go(func() {
			for ctx.Err() == nil {
				if err := do(); err != nil && ctx.Err() == nil {
					t.Error(err)
				}
			}
		})
	}
	for range 3 {
		repeat(func() error { return get(ctx, client) })
		repeat(func() error {
			resp, err := theirs.Get(cfg.Host + "/api/v1/pods")
			if err == nil {
				if resp.Body.Close(); resp.StatusCode != http.StatusOK {
					err = errors.New(resp.Status)
				}
			}
			return err
		})
		repeat(func() error {
			w, err := client.Watch(ctx, pods, "", WatchOptions{})
			if err != nil {
				return err
			}
			defer w.Close()
			if _, err := w.Next(); !errors.Is(err, ErrReplaced) {
				return fmt.Errorf("the watch ended with %w", err)
			}
			return nil
		})
	}
	current := cfg
	for i := range 20 {
		time.Sleep(5 * time.Millisecond)
		mu.Lock()
		valid = fmt.Sprint(i + 1)
		mu.Unlock()
		for refused := range told {
			if refused == current {
				break // other requests are late
			}
		}
		current = rest.CopyConfig(cfg)
		current.BearerToken = fmt.Sprint(i + 1)
		if err := client.Use(current); err != nil {
			t.Fatal(err)
		}
	}
	stop()
	all.Wait()
}

func TestUpgradedConnectionsAreLeftAlone(t *testing.T) {
	cfg := serve(t, func(http.ResponseWriter, *http.Request) { t.Error("a request went elsewhere") })
	o := DefaultOptions()
	closed := false
	o.Gate = func() (time.Time, error) {
		if closed {
			return time.Time{}, errors.New("closed")
		}
		return time.Time{}, nil
	}
	client, err := NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	// client-go does this to run commands in pods.
	upgrader := answers(refusal(401, ""))
	rt, err := rest.HTTPWrappersForConfig(client.RESTConfig(), upgrader)
	if err != nil {
		t.Fatal(err)
	}
	other := rest.CopyConfig(cfg)
	other.BearerToken = "other"
	if err := client.Use(other); err != nil {
		t.Fatal(err)
	}
	exec := func() (*http.Response, error) {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, cfg.Host+"/api/v1/namespaces/ns/pods/a/exec", nil)
		if err != nil {
			t.Fatal(err)
		}
		return rt.RoundTrip(req)
	}
	if resp, err := exec(); err != nil || resp.StatusCode != http.StatusUnauthorized {
		t.Errorf("got %v, %v", resp, err)
	}
	closed = true
	_, err = exec()
	if _, gated := errors.AsType[*GatedError](err); !gated || len(upgrader.requests) != 1 {
		t.Errorf("got %v and the requests %q", err, upgrader.requests)
	}
}
