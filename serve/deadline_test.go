package serve

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/webhook"
)

// The API server waits only until its deadline. Then nothing may wait for an evaluation.
func TestEvaluationsOfAReviewEndAtItsDeadline(t *testing.T) {
	for name, handler := range map[string]string{
		"validate": `{id: a, validate: true, cel: 'object.metadata.name == "a"'}`,
		"mutate":   `{id: a, mutate: true, cel: '{"labels": {"done": "yes"}}'}`,
		"where":    `{id: a, validate: true, where: {cel: 'object.metadata.name == "a"'}, exec: [echo, '{}']}`,
	} {
		t.Run(name, func(t *testing.T) {
			s, op := reviewing(t, handler)
			synctest.Test(t, func(t *testing.T) {
				s.share.reviews = queue.NewSlots(1)
				served := make(chan http.Handler, 1)
				op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, h http.Handler, announce func(webhook.ClientConfig)) error {
					served <- h
					announce(webhook.ClientConfig{URL: "https://hooks.test"})
					<-ctx.Done()
					return nil
				})
				gopftest.Start(t, op, gopftest.NewCluster(t, "example.com/v1/things"))
				time.Sleep(5 * time.Second)
				release, _ := s.share.reviews.Acquire("another", nil, nil)
				defer func() { release() }()
				w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a?timeout=10s", strings.NewReader(reviewOf("default", "")))
				ended := make(chan struct{})
				go func() {
					defer close(ended)
					(<-served).ServeHTTP(w, r)
				}()
				select {
				case <-ended:
					if strings.Contains(w.Body.String(), `"allowed":true`) {
						t.Errorf("got %s", w.Body)
					}
				case <-time.After(11 * time.Second):
					t.Error("the review still waits after its deadline")
					release()
					<-ended
					release = func() {}
				}
			})
		})
	}
}

// The API server is one client, with the reviews of all tenants.
func TestOneNamespaceCannotHaveAllReviewsOfTheAPIServer(t *testing.T) {
	slots, closed := newShare().reviews, make(chan struct{})
	close(closed)
	for {
		if _, ok := slots.AcquireIn("10.0.0.1", "many", closed, nil); !ok {
			break
		}
	}
	if _, ok := slots.AcquireIn("10.0.0.1", "other", closed, nil); !ok {
		t.Error("there is no slot for the other namespace")
	}
	if _, ok := slots.AcquireIn("10.0.0.2", "many", closed, nil); !ok {
		t.Error("there is no slot for the other client")
	}
}
