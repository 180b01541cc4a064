package admission

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// world is a real cluster with a custom resource for one test.
type world struct {
	*kube.Client
	t         *testing.T
	ctx       context.Context
	config    *rest.Config
	namespace string
	things    kind.Info // with the subresources status and scale
	all       []kind.Info
	managed   string
	linger    time.Duration // see Config

	mu     sync.Mutex
	writes map[string]int // of webhook configurations, by verb
}

var (
	namespaces = kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	services   = kind.Info{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true}
	crds       = kind.Info{Group: "apiextensions.k8s.io", Version: "v1", Plural: "customresourcedefinitions", Kind: "CustomResourceDefinition"}
)

// newWorld skips the test if there is no control plane to test with.
func newWorld(t *testing.T) *world {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG names no cluster")
	}
	cfg, _, err := kube.LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	o := kube.DefaultOptions()
	o.Log = slog.New(slog.DiscardHandler)
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	w := &world{t: t, ctx: ctx, config: cfg, writes: map[string]int{}}
	o.Observe = w.observe
	client, err := kube.NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	w.Client = client
	group := fmt.Sprintf("t%08x.gopf.test", rand.Uint32())
	w.managed = "hooks." + group
	w.create(kube.Target{Info: crds}, fmt.Sprintf(`{"metadata":{"name":"things.%[1]s"},"spec":{"group":"%[1]s","scope":"Namespaced",
		"names":{"plural":"things","singular":"thing","kind":"Thing","listKind":"ThingList"},
		"versions":[{"name":"v1","served":true,"storage":true,
			"schema":{"openAPIV3Schema":{"type":"object","x-kubernetes-preserve-unknown-fields":true,"properties":{
				"spec":{"type":"object","x-kubernetes-preserve-unknown-fields":true},
				"status":{"type":"object","x-kubernetes-preserve-unknown-fields":true}}}},
			"subresources":{"status":{},"scale":{"specReplicasPath":".spec.replicas","statusReplicasPath":".status.replicas"}}}]}}`, group))
	w.namespace = w.create(kube.Target{Info: namespaces}, `{"metadata":{"generateName":"admission-test-"}}`).Name
	t.Cleanup(func() {
		forever := context.WithoutCancel(ctx)
		for _, target := range []kube.Target{
			{Info: newKeeper(nil, nil, false, &ConfigurationsOptions{Log: slog.Default()}).info, Name: w.managed},
			{Info: newKeeper(nil, nil, true, &ConfigurationsOptions{Log: slog.Default()}).info, Name: w.managed},
			{Info: crds, Name: "things." + group},
			{Info: namespaces, Name: w.namespace},
		} {
			_ = client.Delete(forever, target, kube.DeleteOptions{}) // some may not exist
		}
		cancel()
		client.Close()
	})
	w.eventually("the custom resource is served", func() bool {
		d, err := client.Discover(ctx)
		if err != nil {
			return false
		}
		w.all = d.Resources
		for _, i := range d.Resources {
			if i.Group == group && len(i.Subresources) == 2 {
				w.things = i
			}
		}
		return w.things.Plural != ""
	})
	w.eventually("custom resources can be created", func() bool {
		_, err := client.Create(ctx, kube.Target{Info: w.things, Namespace: w.namespace}, []byte(w.thing("first", "")), kube.DryRun())
		return err == nil
	})
	return w
}

func (w *world) observe(o kube.Observation) {
	if o.Resource.Group == "admissionregistration.k8s.io" && (o.Verb == "create" || o.Verb == "patch") {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes[o.Verb]++
	}
}

// written counts the writes of configurations.
func (w *world) written() map[string]int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return maps.Clone(w.writes)
}

func (w *world) eventually(what string, is func() bool) {
	w.t.Helper()
	for !is() {
		select {
		case <-w.ctx.Done():
			w.t.Fatalf("timeout while waiting for: %s", what)
		case <-time.After(20 * time.Millisecond):
		}
	}
}

func (w *world) create(t kube.Target, body string, params ...kube.Param) *object.Body {
	w.t.Helper()
	b, err := w.Create(w.ctx, t, []byte(body), params...)
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// thing returns the JSON of a custom resource. more has further fields and starts with a
// comma.
func (w *world) thing(name, more string) string { return w.described(`{"name":"`+name+`"}`, more) }

// described returns a thing with the given metadata.
func (w *world) described(metadata, more string) string {
	return fmt.Sprintf(`{"apiVersion":"%s","kind":"Thing","metadata":%s%s}`, w.things.APIVersion(), metadata, more)
}

func (w *world) target(name string) kube.Target {
	return kube.Target{Info: w.things, Namespace: w.namespace, Name: name}
}

// handler returns a review handler for things.
func (w *world) handler(id string, a handler.Admission, fn handlerFunc) *handler.Handler {
	h := calling(id, a, fn)
	h.Of = kind.Plural("things").InGroup(w.things.Group)
	return h
}

// probes returns handlers that show whether the API server calls our webhooks.
func (w *world) probes() handler.Set {
	var all handler.Set
	for id, mutating := range map[string]bool{"probe-validating": false, "probe-mutating": true} {
		h := calling(id, handler.Admission{
			Mutating: mutating, Operations: []string{"CREATE"},
			Labels: []metav1.LabelSelectorRequirement{{Key: w.managed, Operator: "In", Values: []string{id}}},
		}, func(context.Context, *handler.Request) error {
			return &handler.DeniedError{Err: errors.New("probed")}
		})
		h.Of = kind.Plural("configmaps").InGroup("")
		all = append(all, h)
	}
	return all
}

// control runs a [Control] until stop is called or the test ends.
func (w *world) control(server webhook.Server, handlers ...*handler.Handler) (c *Control, stop func()) {
	w.t.Helper()
	o := DefaultReviewerOptions()
	o.Log = slog.New(slog.DiscardHandler)
	c, err := New(Config{
		Client: w.Client, Server: server, Managed: w.managed, Handlers: append(w.probes(), handlers...),
		Namespace: w.namespace + "-other", Reviewer: o, Linger: w.linger, Log: o.Log,
	})
	if err != nil {
		w.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(w.ctx))
	ended := make(chan error, 1)
	go func() { ended <- c.Run(ctx) }()
	c.Discovered(w.all)
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			w.t.Errorf("the control ended with %v", err)
		}
	})
	w.t.Cleanup(stop)
	w.asks("probe-validating", true)
	w.asks("probe-mutating", true)
	return c, stop
}

// asks waits until the API server calls our webhooks, or no longer does.
func (w *world) asks(probe string, want bool) {
	w.t.Helper()
	body := fmt.Sprintf(`{"metadata":{"name":"probe","labels":{"%s":"%s"}}}`, w.managed, probe)
	w.eventually(fmt.Sprintf("%s is called: %v", probe, want), func() bool {
		_, err := w.WithBackoffs(nil).Create(w.ctx, kube.Target{Info: configMaps, Namespace: w.namespace}, []byte(body), kube.DryRun())
		return want == (err != nil && strings.Contains(err.Error(), "probed")) && (want || err == nil)
	})
}

// configuration returns one of our configurations from the cluster.
func (w *world) configuration(mutating bool) *object.Body {
	w.t.Helper()
	k := newKeeper(w.Client, nil, mutating, &ConfigurationsOptions{Managed: w.managed, Log: slog.Default()})
	b, err := w.Get(w.ctx, k.target())
	if err != nil {
		w.t.Fatal(err)
	}
	return b
}

// raw sends a request and returns the response with its headers.
func (w *world) raw(method, path, body string) (*http.Response, string) {
	w.t.Helper()
	client, err := rest.HTTPClientFor(w.config)
	if err != nil {
		w.t.Fatal(err)
	}
	req, err := http.NewRequestWithContext(w.ctx, method, strings.TrimSuffix(w.Host(), "/")+path, strings.NewReader(body))
	if err != nil {
		w.t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/json")
	resp, err := client.Do(req)
	if err != nil {
		w.t.Fatal(err)
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp, string(text)
}

func fieldOf(t *testing.T, b *object.Body, path ...string) any {
	t.Helper()
	v, _ := b.Lookup(path...)
	return v
}

func mustJSON(v any) []byte {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	return raw
}

func discard() *slog.Logger { return slog.New(slog.DiscardHandler) }
