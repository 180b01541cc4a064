package metacontroller

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
	"gopf.dev/gopf/gopftest"
)

const (
	composites = "metacontroller.k8s.io/v1alpha1/compositecontrollers"
	leases     = "coordination.k8s.io/v1/leases"
)

// callers records the callers of hooks.
type callers struct {
	mu    sync.Mutex
	calls []string
}

func (c *callers) add(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls = append(c.calls, name)
}

// take returns the callers since the last take.
func (c *callers) take() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	calls := c.calls
	c.calls = nil
	return slices.Compact(slices.Sorted(slices.Values(calls)))
}

// elected is a cluster with a controller whose hook is called ten times a second.
func elected(t *testing.T) (*gopftest.Cluster, *callers) {
	t.Helper()
	c := gopftest.NewCluster(t, leases)
	c.Load(t, "testdata/definitions.yaml")
	c.Define(t, stageKinds[:5]...)
	c.Create(t, thing())
	c.Create(t, controllerOf("http://hooks.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"}))
	return c, &callers{}
}

// startReplica starts a replica. A call of a hook fails the test if the replica does not hold
// the Lease.
func startReplica(t *testing.T, c *gopftest.Cluster, calls *callers, name string) (stop func()) {
	t.Helper()
	op := gopf.New(gopf.Identity("metacontroller.example.com"))
	op.Settings.Election = gopf.ElectionSettings{
		Enabled: true, Name: "metacontroller", Namespace: "default", Identity: name, Duration: 10 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: time.Second,
	}
	op.OnCleanup("slow", func(context.Context, *gopf.Activity) error {
		time.Sleep(10 * time.Second)
		return nil
	})
	Declare(op, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
		calls.add(name)
		lease, _ := c.Lookup(t, leases, "default", "metacontroller")
		if holder := scalar(lease, "spec", "holderIdentity"); holder != name {
			t.Errorf("%s calls a hook while the holder of the Lease is %q", name, holder)
		}
		return respond(r, nil, map[string]any{"body": map[string]any{"resyncAfterSeconds": 0.1}}), nil
	})})
	return gopftest.Start(t, op, c)
}

func TestNoHookIsCalledAfterTheLeaseIsReleased(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := elected(t)
		stop := startReplica(t, c, calls, "first")
		time.Sleep(20 * time.Second)
		if got := calls.take(); !slices.Equal(got, []string{"first"}) {
			t.Errorf("hooks were called by %v", got)
		}
		stop()
		c.Wait(t, leases, "default", "metacontroller", func(o *unstructured.Unstructured) bool { return scalar(o, "spec", "holderIdentity") == "" })
		calls.take()
		startReplica(t, c, calls, "second")
		time.Sleep(20 * time.Second)
		if got := calls.take(); !slices.Equal(got, []string{"second"}) {
			t.Errorf("hooks were called by %v", got)
		}
	})
}

func TestNoHookIsCalledAfterTheLeaseIsLost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, calls := elected(t)
		startReplica(t, c, calls, "first")
		time.Sleep(20 * time.Second)
		startReplica(t, c, calls, "second")
		time.Sleep(20 * time.Second)
		calls.take()
		outage := c.Fault(gopftest.Writes("leases").Where(func(r gopftest.Request) bool { return bytes.Contains(r.Body, []byte(`"first"`)) }), gopftest.Fail(503))
		time.Sleep(time.Minute)
		if got := calls.take(); !slices.Equal(got, []string{"first", "second"}) {
			t.Errorf("hooks were called by %v", got)
		}
		outage.Stop()
		time.Sleep(time.Minute)
		if got := calls.take(); !slices.Equal(got, []string{"second"}) {
			t.Errorf("hooks were called by %v", got)
		}
	})
}

// standby is the client of a replica whose Lease has expired.
type standby struct{ client.Client }

func (standby) MayWrite() error { return errors.New("another replica holds the lease") }

func TestNoHookIsCalledWhenTheLeaseHasExpiredByTheClock(t *testing.T) {
	transport := &answering{body: map[string]any{}}
	h := &hook{kind: "sync", version: V1, url: "http://hooks.test", timeout: time.Second, api: standby{}, base: transport}
	if err := h.call(t.Context(), thing(), map[string]any{}, &map[string]any{}); !errors.Is(err, errStandby) || transport.calls.Load() > 0 {
		t.Errorf("got %v and %d calls", err, transport.calls.Load())
	}
	h.api = nil
	if err := h.call(t.Context(), thing(), map[string]any{}, &map[string]any{}); err != nil || transport.calls.Load() != 1 {
		t.Errorf("got %v and %d calls", err, transport.calls.Load())
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := h.call(ctx, thing(), map[string]any{}, &map[string]any{}); !errors.Is(err, context.Canceled) || transport.calls.Load() != 1 {
		t.Errorf("got %v and %d calls", err, transport.calls.Load())
	}
}

func TestTheClientOfHandlersReportsWhetherTheReplicaIsTheLeader(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := elected(t)
		op := gopf.New(gopf.Identity("metacontroller.example.com"))
		op.Settings.Election = gopf.ElectionSettings{Enabled: true, Name: "metacontroller", Namespace: "default", Duration: 10 * time.Second, RenewDeadline: 8 * time.Second, RetryPeriod: time.Second}
		var api client.Client
		op.Resource(things).OnEvent("keep", func(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
			api = e.API
			return nil
		})
		stop := gopftest.Start(t, op, c)
		time.Sleep(20 * time.Second)
		h := &hook{api: api}
		if err := h.allowed(t.Context()); err != nil {
			t.Errorf("the leader: got %v", err)
		}
		stop()
		if err := h.allowed(t.Context()); !errors.Is(err, errStandby) {
			t.Errorf("the former leader: got %v", err)
		}
	})
}

func TestTheLogAnnouncesNoWritesToControllerResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c, _ := elected(t)
		var lines bytes.Buffer
		op := gopf.New(gopf.Identity("metacontroller.example.com"))
		Declare(op, Options{Transport: &answering{body: map[string]any{}}})
		stop := gopftest.Start(t, op, c, gopf.Log(slog.New(slog.NewTextHandler(&lines, nil))))
		time.Sleep(10 * time.Second)
		stop()
		if !strings.Contains(lines.String(), "Client is configured") || strings.Contains(lines.String(), "finalizers") {
			t.Errorf("the log is\n%s", &lines)
		}
	})
}

func TestAControllerRunsAsLongAsItsResourceAndWithItsSpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		calls := &callers{}
		c := newStage(t, Options{Transport: roundTripper(func(r *http.Request) (*http.Response, error) {
			calls.add(r.URL.Host)
			return respond(r, nil, map[string]any{"body": map[string]any{"resyncAfterSeconds": 0.1}}), nil
		})})
		check := func(when string, hosts ...string) {
			t.Helper()
			time.Sleep(time.Second)
			calls.take()
			time.Sleep(10 * time.Second)
			if got := calls.take(); !slices.Equal(got, hosts) {
				t.Errorf("%s, hooks were called at %v", when, got)
			}
		}
		change := func(patch map[string]any) { c.Patch(t, composites, "", "ctl", patch) }
		resource := controllerOf("http://one.test", map[string]any{"apiVersion": "ctl.example.com/v1", "resource": "leaves"})
		c.Create(t, thing())
		c.Create(t, resource.DeepCopy())
		check("first", "one.test")
		change(map[string]any{"metadata": map[string]any{"labels": map[string]any{"other": "yes"}}})
		check("after a change of a label", "one.test")
		change(map[string]any{"spec": map[string]any{"hooks": map[string]any{"sync": map[string]any{"webhook": map[string]any{"url": "http://two.test/sync"}}}}})
		check("after a change of the spec", "two.test")
		c.Delete(t, composites, "", "ctl")
		check("after the deletion")
		c.Create(t, resource)
		check("after the second creation", "one.test")
		time.Sleep(2 * time.Minute) // repeated events are posted once a minute
		counts := map[string]int{}
		for _, e := range c.List(t, "v1/events", "") {
			n, _, _ := unstructured.NestedInt64(e.Object, "count")
			counts[scalar(e, "reason")] += int(max(1, n))
		}
		for reason, want := range map[string]int{"Starting": 3, "Started": 3, "Stopping": 2, "Stopped": 2} {
			if counts[reason] != want {
				t.Errorf("there are %d events %s, not %d", counts[reason], reason, want)
			}
		}
	})
}
