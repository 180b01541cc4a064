package process

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/client"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/logs"
)

// parent is an object of 2 KB with a ConfigMap, a Secret and a Service, and its API server.
// The server keeps the object. It accepts all children.
type parent struct {
	apiclient.API
	*Processor
	server *cluster
	calls  int // of the reconcile handler
	writes int

	called, applied func() // called during these requests and calls; may be nil
	text            string // of the ConfigMap
}

func newParent(t testing.TB) *parent {
	var alarms []time.Duration
	p := &parent{server: newCluster()}
	k := newKind(p.server, &alarms)
	k.API, k.Log = p, slog.New(logs.New(io.Discard, logs.Options{}))
	k.Config.Progress, k.Config.Base = stateOf("things").Storages(true)
	k.Config.KeepsStatus = func(map[string]any) bool { return true }
	k.Resource = kind.Info{Group: "example.com", Version: "v1", Plural: "things", Kind: "Thing", Namespaced: true, Subresources: []string{"status"}}
	known := []kind.Info{
		{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true, Preferred: true},
		{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true, Preferred: true},
		{Version: "v1", Plural: "services", Kind: "Service", Namespaced: true, Preferred: true, Subresources: []string{"status"}},
	}
	objects := &apiclient.Objects{API: p, Known: func() []kind.Info { return known }}
	h := &handler.Handler{Family: handler.Reconciles, ID: "children", Reconcile: &handler.Reconcile{}}
	h.Call = func(_ context.Context, r *handler.Request) error { return p.declare(r, objects) }
	k.Reconcile = &Reconcile{
		Handlers: handler.Set{h}, References: childwatch.NewReferences(nil, math.MaxInt64),
		Runner:     &reconcile.Runner{Objects: objects, Store: childwatch.NewStore("op.example.com", func() uint64 { return 1 }), Name: "op.example.com"},
		Listed:     func(*handler.Handler) bool { return true },
		Conditions: func(context.Context, kind.Info) (bool, bool) { return true, true },
	}
	first, err := object.Parse(largeObject(""))
	if err != nil {
		t.Fatal(err)
	}
	p.Processor, p.server.object = k, first.Map()
	return p
}

// declare declares the children.
func (p *parent) declare(r *handler.Request, objects *apiclient.Objects) error {
	p.calls++
	if p.called != nil {
		p.called()
	}
	config := &corev1.ConfigMap{Data: map[string]string{"size": "1", "text": p.text}}
	secret := &corev1.Secret{Data: map[string][]byte{"group": []byte("a")}}
	service := &corev1.Service{Spec: corev1.ServiceSpec{ClusterIP: corev1.ClusterIPNone, Ports: []corev1.ServicePort{{Name: "web", Port: 80}}}}
	config.Name, secret.Name, service.Name = r.Body.Name, r.Body.Name, r.Body.Name
	api := (&apiclient.Cluster{Objects: objects}).For(r.Body.Namespace, nil, nil)
	for _, child := range []client.Object{config, secret, service} {
		target, err := api.Endpoint(child)
		if err != nil {
			return err
		}
		fields, err := apiclient.Manifest(child, target)
		if err != nil {
			return err
		}
		w := &handler.Wanted{Info: target.Info, Fields: fields}
		w.APIVersion, w.Kind, w.Namespace, w.Name = target.Info.APIVersion(), target.Info.Kind, target.Namespace, target.Name
		r.Children.Wanted = append(r.Children.Wanted, w)
		r.Children.Find(w.Key)
	}
	return nil
}

func (p *parent) Get(ctx context.Context, t kube.Target) (*object.Body, error) {
	return p.server.Get(ctx, t)
}

func (p *parent) Patch(ctx context.Context, t kube.Target, kind types.PatchType, raw []byte, params ...kube.Param) (*object.Body, error) {
	p.writes++
	switch {
	case t.Info.Group == "":
		return p.apply(raw)
	case kind != types.JSONPatchType:
		return p.server.Patch(ctx, t, kind, raw, params...)
	}
	steps, err := jsonpatch.DecodePatch(raw)
	if err != nil {
		return nil, err
	}
	after, err := steps.Apply(p.server.body().Raw())
	if err != nil {
		return nil, err
	}
	parsed, err := object.Parse(after)
	if err != nil {
		return nil, err
	}
	p.server.object = parsed.Map()
	p.server.version++
	return p.server.body(), nil
}

// apply creates a child.
func (p *parent) apply(raw []byte) (*object.Body, error) {
	if p.applied != nil {
		p.applied()
	}
	var child map[string]any
	if err := json.Unmarshal(raw, &child); err != nil {
		return nil, err
	}
	metadata := child["metadata"].(map[string]any)
	metadata["uid"], metadata["resourceVersion"] = fmt.Sprintf("%08x-0000-4000-8000-000000000001", p.writes), fmt.Sprint(p.writes)
	metadata["managedFields"] = []any{map[string]any{
		"manager": "op.example.com", "operation": "Apply", "apiVersion": "v1", "time": "2026-01-01T00:00:00Z", "fieldsType": "FieldsV1",
		"fieldsV1": map[string]any{"f:metadata": map[string]any{"f:labels": map[string]any{"f:" + childwatch.Label: map[string]any{}}}},
	}}
	raw, err := json.Marshal(child)
	if err != nil {
		return nil, err
	}
	return object.ParseWhole(raw)
}

// start handles the object as after a start of the process.
func (p *parent) start(t testing.TB, raw []byte) {
	body, err := object.Parse(raw)
	if err != nil {
		t.Fatal(err)
	}
	event := &Event{Type: kube.Listed, Body: body}
	p.Turn(t.Context(), NewMemory(event), Occasion{Event: event})
}

// settledParent returns a function that handles a settled object and its children as after
// a start of the process.
func settledParent(t testing.TB) (handle func()) {
	p := newParent(t)
	p.start(t, p.server.body().Raw())
	raw := p.server.body().Raw()
	if p.calls != 1 || p.writes != 4 {
		t.Fatalf("a new object: %d calls, %d writes", p.calls, p.writes)
	}
	return func() {
		p.calls, p.writes = 0, 0
		p.start(t, raw)
		if p.calls != 1 || p.writes != 0 {
			t.Fatalf("%d calls, %d writes", p.calls, p.writes)
		}
	}
}

// TestARestartAllocatesLittleForAnObjectWithChildren guards against work that is done for
// each object although few objects need it. It takes 422 allocations. The race detector drops
// pooled objects: with it, there are about 500.
func TestARestartAllocatesLittleForAnObjectWithChildren(t *testing.T) {
	if n := testing.AllocsPerRun(100, settledParent(t)); n > 540 {
		t.Errorf("%.0f allocations", n)
	}
}

func BenchmarkSettledParent(b *testing.B) {
	handle := settledParent(b)
	b.ReportAllocs()
	for b.Loop() {
		handle()
	}
}

func TestHandlersRunAsideAndChildrenAreWrittenInside(t *testing.T) {
	p := newParent(t)
	aside, called, applied := false, 0, 0
	p.Aside = func(_ *object.Body, call func()) {
		aside = true
		defer func() { aside = false }()
		call()
	}
	p.Inside = func(_ *object.Body, part func()) {
		aside = false
		defer func() { aside = true }()
		part()
	}
	p.called = func() {
		if called++; !aside {
			t.Error("the handler was called in an active slot")
		}
	}
	p.applied = func() {
		if applied++; aside {
			t.Error("a child was applied without an active slot")
		}
	}
	p.start(t, p.server.body().Raw())
	if called != 1 || applied != 3 {
		t.Errorf("%d calls, %d applies", called, applied)
	}
}

// Clients of its namespace can make a child large. The API server delays the events of others
// during many writes to large objects.
func TestANamespaceHasOneWriteToALargeChildInFlight(t *testing.T) {
	for name, test := range map[string]struct {
		text string
		want []int // the namespaces with a heavy write during each apply
	}{
		"small children": {"", []int{0, 0, 0}},
		"a large one":    {strings.Repeat("x", 4*heavyObject), []int{1, 0, 0}},
	} {
		p := newParent(t)
		p.Heavy, p.text = &HeavyWrites{}, test.text
		var got []int
		p.applied = func() { got = append(got, p.Heavy.gate.Groups()) }
		p.start(t, p.server.body().Raw())
		if !slices.Equal(got, test.want) || p.Heavy.gate.Groups() > 0 {
			t.Errorf("%s: during the applies %v, want %v; %d afterwards", name, got, test.want, p.Heavy.gate.Groups())
		}
	}
}
