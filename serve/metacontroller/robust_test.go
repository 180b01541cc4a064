package metacontroller

import (
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf/gopftest"
)

// panicking is a hook whose calls for one parent panic a few times.
type panicking struct {
	mu    sync.Mutex
	left  int
	calls []time.Time // that panicked
}

func (p *panicking) RoundTrip(r *http.Request) (*http.Response, error) {
	var request struct {
		Parent unstructured.Unstructured `json:"parent"`
	}
	if err := json.NewDecoder(r.Body).Decode(&request); err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if request.Parent.GetName() == "bad" && p.left > 0 {
		p.left--
		p.calls = append(p.calls, time.Now())
		panic("no form")
	}
	return respond(r, nil, map[string]any{"body": map[string]any{"status": map[string]any{"done": true}}}), nil
}

func TestAPanicOfASyncIsRetriedWithABackoffAndEndsNoOther(t *testing.T) {
	for _, method := range []string{OnDelete, RollingRecreate} { // the second calls its hooks in parallel
		t.Run(method, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				hook := &panicking{left: 8}
				c := newStage(t, Options{Transport: hook})
				for _, name := range []string{"bad", "p"} {
					o := thing()
					o.SetName(name)
					// The labels of the ControllerRevisions.
					if err := unstructured.SetNestedField(o.Object, name, "spec", "template", "metadata", "labels", "app"); err != nil {
						t.Fatal(err)
					}
					if err := unstructured.SetNestedField(o.Object, name, "spec", "selector", "matchLabels", "app"); err != nil {
						t.Fatal(err)
					}
					c.Create(t, o)
				}
				child := map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves", "updateStrategy": map[string]any{"method": method}}
				c.Create(t, controllerOf("http://hooks.test", child))
				time.Sleep(time.Minute)
				for _, name := range []string{"bad", "p"} {
					if done, _, _ := unstructured.NestedBool(c.Get(t, things, "default", name).Object, "status", "done"); !done {
						t.Errorf("%s was not synced", name)
					}
				}
				if len(hook.calls) != 8 || hook.calls[7].Sub(hook.calls[6]) <= 4*hook.calls[1].Sub(hook.calls[0]) {
					t.Errorf("the calls have no growing delay: %v", hook.calls)
				}
				said := func(o *unstructured.Unstructured) bool {
					about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "name")
					message, _, _ := unstructured.NestedString(o.Object, "message")
					return about == "bad" && strings.Contains(message, "panic: no form")
				}
				if !slices.ContainsFunc(c.List(t, "v1/events", "default"), said) {
					t.Error("the parent has no event about the panic")
				}
			})
		})
	}
}

func TestAControllerWhoseDeletionWasMissedStops(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hook := &answering{body: map[string]any{}}
		c := newStage(t, Options{Transport: hook})
		c.Create(t, thing())
		c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
		time.Sleep(10 * time.Second)
		calls := hook.calls.Load()
		fault := c.Fault(gopftest.Requests("watch", "compositecontrollers"), gopftest.Fail(http.StatusServiceUnavailable))
		c.CutStreams()
		time.Sleep(time.Second)
		c.Delete(t, "metacontroller.k8s.io/v1alpha1/compositecontrollers", "", "ctl")
		c.Expire()
		fault.Stop()
		time.Sleep(time.Minute)
		c.Patch(t, things, "default", "p", map[string]any{"spec": map[string]any{"more": true}})
		time.Sleep(time.Minute)
		if now := hook.calls.Load(); calls == 0 || now != calls {
			t.Errorf("the deleted controller called its hook %d times, after %d calls before", now-calls, calls)
		}
	})
}

func TestAFinalizerThatTheAPIServerWouldRejectIsAnErrorOfTheController(t *testing.T) {
	for name, want := range map[string]bool{strings.Repeat("n", 43): false, strings.Repeat("n", 44): true} {
		for _, finalize := range []bool{true, false} {
			synctest.Test(t, func(t *testing.T) {
				hook := &answering{body: map[string]any{}}
				c := newStage(t, Options{Transport: hook})
				c.Create(t, thing())
				controller := controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
				controller.SetName(name)
				if finalize {
					url := map[string]any{"webhook": map[string]any{"url": "http://hooks.test/finalize"}}
					if err := unstructured.SetNestedMap(controller.Object, url, "spec", "hooks", "finalize"); err != nil {
						t.Fatal(err)
					}
				}
				c.Create(t, controller)
				time.Sleep(5 * time.Second)
				said := slices.ContainsFunc(c.List(t, "v1/events", "default"), func(o *unstructured.Unstructured) bool {
					about, _, _ := unstructured.NestedString(o.Object, "involvedObject", "kind")
					message, _, _ := unstructured.NestedString(o.Object, "message")
					return about == "CompositeController" && strings.HasSuffix(message, "needs a name of at most 43 bytes, not 44")
				})
				refused := want && finalize
				if called := hook.calls.Load() > 0; said != refused || called == refused {
					t.Errorf("%d bytes, finalize %v: there is an event: %v; the hook was called: %v", len(name), finalize, said, called)
				}
			})
		}
	}
}

func TestParallelCallsOfAHookReuseTheirConnections(t *testing.T) {
	const parallel = 8
	var connected atomic.Int32
	var together sync.WaitGroup // the calls of a round
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		together.Done()
		together.Wait()
		_, _ = w.Write([]byte("{}"))
	}))
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connected.Add(1)
		}
	}
	server.Start()
	defer server.Close()
	h, err := newHook(t.Context(), "sync", &Hook{Webhook: &Webhook{URL: &server.URL}}, nil, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer h.close()
	for range 4 {
		together.Add(parallel)
		var calls sync.WaitGroup
		for range parallel {
			calls.Go(func() {
				if _, err := h.post(t.Context(), "key", []byte("{}")); err != nil {
					t.Error(err)
				}
			})
		}
		calls.Wait()
	}
	if n := connected.Load(); n != parallel {
		t.Errorf("%d parallel calls made %d connections", parallel, n)
	}
}
