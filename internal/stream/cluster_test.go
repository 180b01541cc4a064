package stream

import (
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// place is a namespace of a real cluster, used for config maps.
type place struct {
	t         *testing.T
	client    *kube.Client
	namespace string
}

var configMaps = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}

func newPlace(t *testing.T) *place {
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	cfg, _, err := kube.LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(cfg, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	namespaces := kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	ns, err := client.Create(t.Context(), kube.Target{Info: namespaces}, []byte(`{"metadata":{"generateName":"stream-test-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = client.Delete(context.WithoutCancel(t.Context()), kube.Target{Info: namespaces, Name: ns.Name}, kube.DeleteOptions{UID: ns.UID})
	})
	return &place{t, client, ns.Name}
}

func (p *place) object(name string) kube.Target {
	return kube.Target{Info: configMaps, Namespace: p.namespace, Name: name}
}

func (p *place) create(name string) {
	p.t.Helper()
	body := fmt.Appendf(nil, `{"metadata":{"name":%q,"labels":{"own":"yes"}}}`, name)
	if _, err := p.client.Create(p.t.Context(), p.object(""), body); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) patch(name, patch string) {
	p.t.Helper()
	if _, err := p.client.Patch(p.t.Context(), p.object(name), types.MergePatchType, []byte(patch)); err != nil {
		p.t.Fatal(err)
	}
}

func (p *place) delete(name string) {
	p.t.Helper()
	if err := p.client.Delete(p.t.Context(), p.object(name), kube.DeleteOptions{}); err != nil {
		p.t.Fatal(err)
	}
}

func TestAStreamOfARealCluster(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	p.create("a")

	config := DefaultConfig(configMaps, p.namespace)
	config.Selector = "own=yes"
	config.ClientTimeout = 500 * time.Millisecond // reconnects all the time
	events := make(chan Event)
	stopped := make(chan error, 1)
	runCtx, stop := context.WithCancel(ctx)
	go func() { stopped <- New(p.client, config).Run(runCtx, func(e Event) { events <- e }) }()
	var got []string
	take := func() {
		select {
		case e := <-events:
			if e.Body == nil {
				got = append(got, e.Type.String())
			} else {
				got = append(got, e.Type.String()+" "+e.Body.Name)
			}
		case <-ctx.Done():
			t.Fatalf("no more events; so far: %q", got)
		}
	}
	take()
	take()
	for i := range 10 {
		p.create(fmt.Sprint("b", i))
		time.Sleep(100 * time.Millisecond)
		take()
	}
	p.patch("a", `{"data":{"k":"v"}}`)
	take()
	p.delete("a")
	take()
	stop()
	if err := <-stopped; err == nil {
		t.Error("Run ended without an error")
	}
	want := []string{"LISTED a", "SYNCED", "ADDED b0", "ADDED b1", "ADDED b2", "ADDED b3", "ADDED b4", "ADDED b5", "ADDED b6", "ADDED b7", "ADDED b8", "ADDED b9",
		"MODIFIED a", "DELETED a"}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
}

// While the receiver is stuck in a list, it receives objects that are created
// meanwhile, and does not receive them again after the list.
func TestNewcomersOfARealCluster(t *testing.T) {
	p := newPlace(t)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for i := range 2 * longList {
		p.create(fmt.Sprint("old", i))
	}
	stuck, unstick := make(chan struct{}), make(chan struct{})
	early, events := make(chan string, 100), make(chan string, 1000)
	config := DefaultConfig(configMaps, p.namespace)
	config.Selector = "own=yes"
	config.Newcomers = func(e Event) bool {
		early <- e.Type.String() + " " + e.Body.Name
		return true
	}
	var run sync.WaitGroup
	runCtx, stop := context.WithCancel(ctx)
	run.Go(func() {
		listed := 0
		_ = New(p.client, config).Run(runCtx, func(e Event) {
			if e.Type != kube.Listed {
				text := e.Type.String()
				if e.Body != nil {
					text += " " + e.Body.Name
				}
				events <- text
				return
			}
			if listed++; listed == 2*longList-10 {
				close(stuck)
				<-unstick
			}
		})
	})
	take := func(from chan string, want ...string) {
		t.Helper()
		for _, want := range want {
			select {
			case got := <-from:
				if got != want {
					t.Errorf("got %q, want %q", got, want)
				}
			case <-ctx.Done():
				t.Fatalf("no %s event", want)
			}
		}
	}
	<-stuck
	p.create("new")
	p.patch("old1", `{"data":{"k":"v"}}`)
	p.patch("new", `{"data":{"k":"v"}}`)
	p.delete("old2")
	p.create("old2")
	p.create("brief")
	p.delete("brief")
	take(early, "ADDED new", "MODIFIED new", "ADDED brief", "DELETED brief")
	close(unstick)
	first := <-events // some servers send changes before the end of the list
	for ; first != "SYNCED"; first = <-events {
		if strings.Contains(first, "new") || strings.Contains(first, "brief") {
			t.Errorf("delivered again: %s", first)
		}
	}
	p.delete("new")
	p.create("last")
	var got []string
	for len(got) == 0 || got[len(got)-1] != "ADDED last" {
		select {
		case e := <-events:
			if !strings.Contains(e, "old") {
				got = append(got, e)
			}
		case <-ctx.Done():
			t.Fatalf("no more events after %q", got)
		}
	}
	if diff := cmp.Diff([]string{"DELETED new", "ADDED last"}, got); diff != "" {
		t.Errorf("events after the list: -want +got\n%s", diff)
	}
	stop()
	run.Wait()
}
