package admission

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// until returns a server that returns the error, or that runs until ctx is done if err
// is nil.
func until(end error) webhook.Server {
	return webhook.Func(func(ctx context.Context, _ http.Handler, announce func(webhook.ClientConfig)) error {
		announce(webhook.ClientConfig{URL: "https://x"})
		if end == nil {
			<-ctx.Done()
		}
		return end
	})
}

func TestRunEndsWithItsServer(t *testing.T) {
	early := errors.New("broken")
	returns := webhook.Func(func(context.Context, http.Handler, func(webhook.ClientConfig)) error { return nil })
	for name, c := range map[string]struct {
		server     webhook.Server
		discovered bool
		want       string
	}{
		"until it is stopped":           {until(nil), true, ""},
		"stopped before it could start": {until(nil), false, ""},
		"a failure":                     {until(early), true, "the webhook server has ended: broken"},
		"an end without reason":         {returns, true, "before it was told to"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				control, err := New(Config{Server: c.server, Reviewer: DefaultReviewerOptions(), Log: discard()})
				if err != nil {
					t.Fatal(err)
				}
				ctx, cancel := context.WithCancel(t.Context())
				ended := make(chan error, 1)
				go func() { ended <- control.Run(ctx) }()
				if c.discovered {
					control.Discovered([]kind.Info{examples})
				}
				synctest.Wait()
				if c.want == "" {
					select {
					case err := <-ended:
						t.Fatalf("the control ended early: %v", err)
					default:
					}
				}
				cancel()
				err = <-ended
				if (err == nil) != (c.want == "") || err != nil && !strings.Contains(err.Error(), c.want) {
					t.Errorf("got %v, want %q", err, c.want)
				}
			})
		})
	}
}

func TestChooseServer(t *testing.T) {
	given := webhook.Local{Port: 1}
	if s, err := ChooseServer(given, false, discard()); err != nil || s.(webhook.Local).Port != 1 {
		t.Errorf("the given one: got %v, %v", s, err)
	}
	if s, err := ChooseServer(nil, true, discard()); err != nil || s == nil {
		t.Errorf("for development: got %v, %v", s, err)
	}
	if _, err := ChooseServer(nil, false, discard()); !errors.Is(err, ErrNoServer) {
		t.Errorf("none: got %v", err)
	}
	if _, err := New(Config{}); !errors.Is(err, ErrNoServer) {
		t.Errorf("none, at last: got %v", err)
	}
	broken := handler.Set{validating("x.", "pods", handler.Admission{})}
	if _, err := New(Config{Server: given, Handlers: broken}); err == nil {
		t.Error("invalid declarations are accepted")
	}
}

func FuzzReviews(f *testing.F) {
	f.Add(mustJSON(reviewOf("CREATE", nil)))
	f.Add(mustJSON(reviewOf("UPDATE", map[string]any{"subResource": "status"})))
	f.Add([]byte(`{"request":{"userInfo":{},"operation":"CREATE","object":{"metadata":{"labels":[]},"spec":null},"resource":{"group":"kopf.dev","version":"v1","resource":"kopfexamples"}}}`))
	change := calling("v", handler.Admission{Mutating: true}, func(_ context.Context, r *handler.Request) error {
		_ = r.Review.Diff()
		_ = r.Body.Labels()
		r.Patch.Set("x", "metadata", "labels", "y")
		r.Patch.Set(nil, "spec", "field")
		return nil
	})
	v := newTestReviewer(change)
	f.Fuzz(func(t *testing.T, body []byte) {
		switch code, text := ask(t, v, "/v", string(body)); code {
		case http.StatusOK, http.StatusBadRequest, http.StatusNotFound:
			if strings.Contains(text, "panic") && !strings.Contains(string(body), "panic") {
				t.Error(text)
			}
		default:
			t.Errorf("got %d %s", code, text)
		}
	})
}
