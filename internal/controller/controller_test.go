package controller

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/crew"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// onePod is a cluster with the pod a in each namespace. Its watches deliver nothing.
func onePod(r *http.Request) (*http.Response, error) {
	namespace := strings.Split(r.URL.Path, "/")[4]
	text := fmt.Sprintf(`{"metadata":{"resourceVersion":"9"},"items":[{"metadata":{"namespace":%q,"name":"a","uid":%q,"resourceVersion":"5"}}]}`, namespace, namespace+"-a")
	code, body := http.StatusOK, io.NopCloser(strings.NewReader(text))
	switch {
	case r.URL.Query().Has("sendInitialEvents"):
		code = http.StatusUnprocessableEntity
	case r.URL.Query().Has("watch"):
		reader, writer := io.Pipe()
		context.AfterFunc(r.Context(), func() { _ = writer.Close() }) // Close of a pipe never fails
		body = reader
	}
	return &http.Response{StatusCode: code, Header: http.Header{}, Body: body, Request: r}, nil
}

type transport func(*http.Request) (*http.Response, error)

func (t transport) RoundTrip(r *http.Request) (*http.Response, error) { return t(r) }

// bench has a controller of pods with one event handler, and notes its calls.
type bench struct {
	*Controller
	paused   bool
	stopping chan struct{}
	ending   crew.Crew

	mu    sync.Mutex
	calls []string
}

// called returns the calls since the last time.
func (b *bench) called() (calls []string) {
	synctest.Wait()
	b.mu.Lock()
	defer b.mu.Unlock()
	calls, b.calls = b.calls, nil
	return calls
}

func newBench(t *testing.T) *bench {
	t.Helper()
	log := slog.New(slog.DiscardHandler)
	client, err := kube.NewClient(&rest.Config{Host: "http://cluster", Transport: transport(onePod)}, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	v, err := vitals.New(vitals.Config{})
	if err != nil {
		t.Fatal(err)
	}
	b := &bench{stopping: make(chan struct{})}
	look := &handler.Handler{ID: "look", Family: handler.Events, Of: kind.Named("pods"), Call: func(_ context.Context, r *handler.Request) error {
		b.mu.Lock()
		defer b.mu.Unlock()
		b.calls = append(b.calls, r.Body.Namespace+"/"+r.Body.Name)
		return nil
	}}
	streams := stream.DefaultConfig(kind.Info{}, "")
	streams.Shared = &stream.Shared{}
	config := Config{
		Client: client, Namespaces: discovery.Namespaces{discovery.Globs("*")}, Stream: streams, Log: log, ExitTimeout: time.Second, Backlog: 1 << 20,
		Post: func(recorder.Event) {}, Clock: NewClock(), DaemonClock: alarm.New((*daemon.Task).Ring), Barrier: index.NewGate(), Budget: NewBudget(),
		Entrance: execute.NewEntrance(nil, 0), Notices: &process.Notices{}, Vitals: v,
		Paused: func() bool { return b.paused }, Stopping: b.stopping, Go: b.ending.Go,
	}
	served := discovery.Served{Info: kind.Info{Version: "v1", Plural: "pods", Kind: "Pod", Namespaced: true}, Handlers: handler.Set{look}}
	b.Controller = New(t.Context(), config, served, true)
	return b
}

func TestControllerServesItsNamespacesUntilItStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Follow(t.Context(), map[string]bool{"x": true})
		if diff := cmp.Diff([]string{"x/a"}, b.called()); diff != "" {
			t.Errorf("after the start: -want +got\n%s", diff)
		}
		b.Follow(t.Context(), map[string]bool{"x": true, "y": true})
		if diff := cmp.Diff([]string{"y/a"}, b.called()); diff != "" {
			t.Errorf("after another namespace came: -want +got\n%s", diff)
		}
		b.Follow(t.Context(), map[string]bool{"y": true})
		if diff := cmp.Diff([]string{"pods.v1 in y"}, b.Sources()); diff != "" {
			t.Errorf("after a namespace left: -want +got\n%s", diff)
		}
		<-b.ending.Empty()
		if b.Memos("x-a") != nil || b.Memos("y-a") == nil {
			t.Error("the objects of the namespace that left are not forgotten, or others are")
		}
		b.Stop(t.Context())
	})
}

func TestControllerListsAgainAfterAPause(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		everywhere := map[string]bool{"x": true}
		b.Follow(t.Context(), everywhere)
		b.called()
		b.paused = true
		b.Pause()
		<-b.ending.Empty()
		b.Follow(t.Context(), everywhere)
		if calls := b.called(); calls != nil {
			t.Errorf("during the pause: %v", calls)
		}
		b.paused = false
		b.Resume()
		b.Follow(t.Context(), everywhere)
		if diff := cmp.Diff([]string{"x/a"}, b.called()); diff != "" {
			t.Errorf("after the pause: -want +got\n%s", diff)
		}
		b.Stop(t.Context())
	})
}

func TestRetiredControllerForgetsItsObjectsBeforeItsSuccessorStarts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBench(t)
		b.Follow(t.Context(), map[string]bool{"x": true})
		b.called()
		known := b.Memos("x-a") != nil
		retired := false
		b.Retire(func() { retired = b.Memos("x-a") == nil })
		if !known || !retired {
			t.Errorf("known before: %v, forgotten when its successor may start: %v", known, retired)
		}
	})
}
