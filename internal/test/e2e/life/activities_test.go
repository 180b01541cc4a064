package life_test

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestAFailedStartupAsksTheClusterForNothing(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	var requests atomic.Int32
	config := rest.CopyConfig(cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper {
		return roundTripper(func(r *http.Request) (*http.Response, error) {
			requests.Add(1)
			return next.RoundTrip(r)
		})
	})
	op := newOperator()
	op.OnStartup("flaky", func(_ context.Context, a *gopf.Activity) error {
		d.Add("flaky #%d", a.Retry)
		if a.Retry == 0 {
			return gopf.RetryAfter(100*time.Millisecond, errors.New("not yet"))
		}
		return nil
	})
	op.OnStartup("broken", func(context.Context, *gopf.Activity) error {
		d.Add("broken")
		return gopf.Permanent(errors.New("no disk"))
	})
	op.OnCleanup("cleanup", func(_ context.Context, a *gopf.Activity) error {
		d.Add("cleanup, API: %v", a.API != nil)
		return nil
	})
	d.handles(op, "ours")
	if err := s.start(op, gopf.Cluster(config)).Wait(); err == nil || !strings.Contains(err.Error(), "no disk") {
		t.Errorf("got %v", err)
	}
	d.Check(t, "flaky #0", "broken", "flaky #1", "cleanup, API: false")
	if n := requests.Load(); n > 0 {
		t.Errorf("the cluster was asked %d times", n)
	}
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func TestCleanupReachesTheCluster(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	d.handles(op, "ours")
	op.OnCleanup("cleanup", func(ctx context.Context, a *gopf.Activity) error {
		client, err := dynamic.NewForConfig(a.API.RESTConfig())
		if err != nil {
			return err
		}
		gvr := schema.GroupVersionResource{Group: "life.gopf.dev", Version: "v1", Resource: "examples"}
		_, err = client.Resource(gvr).Namespace(s.Name).Create(ctx, &unstructured.Unstructured{Object: fields{
			"apiVersion": "life.gopf.dev/v1", "kind": "Example", "metadata": fields{"name": "farewell"},
		}}, metav1.CreateOptions{})
		return err
	})
	s.start(op).serving().Stop()
	if s.Get(examples, "farewell") == nil {
		t.Error("what the cleanup was to make is not there")
	}
	d.Check(t) // and nobody handles it anymore
}

func TestSeveralOperatorsInOneProcess(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	s.Create(peerings, "blue", nil)
	s.Create(peerings, "green", nil)
	type one struct {
		op      *gopf.Operator
		running *operator
		address string
	}
	start := func(name string) one {
		op := peer(d, name, 0)
		op.Settings.Peering.Name = name
		op.Settings.Persistence.Finalizer = name + ".gopf.dev/finalizer"
		op.Settings.Persistence.Progress, op.Settings.Persistence.Base = storagesOf(name)
		address := kit.FreeAddress(t)
		op.Settings.Health.Address, op.Settings.Metrics.Address = address, address
		return one{op, s.start(op), address}
	}
	blue, green := start("blue"), start("green")
	blue.running.serving()
	green.running.serving()
	s.waitRecords(peerings, "blue", "blue")
	s.waitRecords(peerings, "green", "green") // they do not see each other
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "blue create a")
	d.WaitFor(t, "green create a")

	blue.op.Pause("for a test")
	kit.Await(t, "blue pauses", func() bool { return scrape(t, blue.address)["gopf_paused"] == 1 })
	if got := scrape(t, green.address)["gopf_paused"]; got != 0 {
		t.Errorf("green pauses, too: %v", got)
	}
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "green update b")
	never(t, "blue works", time.Second, func() bool { return d.Has("blue update b") })
	blue.op.Unpause()
	d.WaitFor(t, "blue update b")
	if err := blue.op.Run(t.Context()); err == nil || !strings.Contains(err.Error(), "run before") {
		t.Errorf("a second run: %v", err)
	}
	blue.running.Stop()
	s.Patch(examples, "x", spec("c"))
	d.WaitFor(t, "green update c")
	if d.Has("blue update c") {
		t.Error("blue still works")
	}
}
