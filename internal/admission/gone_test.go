package admission

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/handler"
)

// sleepy returns a review of an object for which the handler of [sleeping] ignores its context.
func sleepy(t *testing.T, name string) []byte {
	t.Helper()
	namespace := "of-" + name
	raw, err := json.Marshal(reviewOf("CREATE", map[string]any{"namespace": namespace, "object": map[string]any{"metadata": map[string]any{"name": name, "namespace": namespace}}}))
	if err != nil {
		t.Fatal(err)
	}
	return raw
}

func sleeping(long time.Duration, running *atomic.Int32) *Reviewer {
	return newTestReviewer(calling("v", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		if r.Body.Name == "slow" {
			running.Add(1)
			time.Sleep(long)
			running.Add(-1)
		}
		return nil
	}))
}

// HTTP/2 servers close a connection on which too many requests were canceled and not answered.
// Users of an API server share its connections.
func TestCanceledReviewsDoNotEndTheReviewsOfOthers(t *testing.T) {
	var running atomic.Int32
	v := sleeping(time.Second, &running)
	server := listening(t, v)
	client := server.client()
	post := func(ctx context.Context, body []byte) error {
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL+"/v", bytes.NewReader(body))
		if err != nil {
			return err
		}
		response, err := client.Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	slow, quick := sleepy(t, "slow"), sleepy(t, "quick")
	var all sync.WaitGroup
	for range 10 {
		all.Go(func() {
			for range 50 {
				ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
				_ = post(ctx, slow)
				cancel()
			}
		})
	}
	for range 50 {
		if err := post(t.Context(), quick); err != nil {
			t.Errorf("the review of another user: %v", err)
		}
		time.Sleep(10 * time.Millisecond)
	}
	all.Wait()
	v.Wait(t.Context())
}

// The handler of a canceled review keeps its place until it has ended.
func TestHandlersOfCanceledReviewsCount(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running atomic.Int32
		v := sleeping(time.Minute, &running)
		slow := sleepy(t, "slow")
		for range 200 {
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
			r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/v", bytes.NewReader(slow))
			began := time.Now()
			serveOrAbort(v, httptest.NewRecorder(), r)
			if took := time.Since(began); took > 10*time.Millisecond {
				t.Errorf("a canceled review took %v", took)
			}
			cancel()
		}
		if n := int(running.Load()); n == 0 || n > v.InFlight || v.Load().InFlight != n {
			t.Errorf("%d handlers are running, want at most %d, and %d reviews are in flight", n, v.InFlight, v.Load().InFlight)
		}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		v.Wait(ctx)
		if running.Load() == 0 {
			t.Error("Wait has no limit")
		}
		v.Wait(t.Context())
		load := v.Load()
		if running.Load() != 0 || load.InFlight != 0 || load.Bytes != 0 || load.Receiving != 0 || len(v.inbox.letters) != 0 || v.inbox.live != 0 {
			t.Errorf("in the end: %d handlers, %+v, %d letters", running.Load(), load, len(v.inbox.letters))
		}
	})
}

// All users of an API server share the reviews that may be open at the same time.
func TestTheMostReviewsOfANamespaceGiveWayToThoseOfOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCrowd(t)
		c.v.inbox.most = 80
		stop := c.flood(100, "10.0.0.1", c.review("attacker", "slow", "x"))
		time.Sleep(1200 * time.Millisecond)
		for range 8 {
			if code, took := c.send(t.Context(), "10.0.0.1", c.review("victim", "x", "x")); code != http.StatusOK || took > 0 {
				t.Errorf("a review of another tenant got %d after %v", code, took)
			}
			time.Sleep(50 * time.Millisecond)
		}
		stop()
	})
}
