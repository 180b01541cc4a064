package admission_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/webhook"
)

// load creates things, one after another, until it is stopped.
type load struct {
	made, refused atomic.Int32
	stop          func()
}

func (w *world) load() *load {
	l := &load{}
	ctx, cancel := context.WithCancel(w.ctx())
	var running sync.WaitGroup
	for worker := range 2 {
		running.Go(func() {
			u := w.try(cluster)
			for i := 0; ctx.Err() == nil; i++ {
				_, err := u.create(fmt.Sprintf("load-%d-%d", worker, i), fields{}, dryRun)
				if l.made.Add(1); err != nil && l.refused.Add(1) == 1 {
					w.t.Errorf("the first creation that was refused: %v", err)
				}
			}
		})
	}
	l.stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(l.stop)
	return l
}

// goesOn waits for some more creations.
func (l *load) goesOn(t *testing.T) {
	t.Helper()
	before := l.made.Load()
	kit.Eventually(t, func() error {
		if n := l.made.Load() - before; n < 10 {
			return fmt.Errorf("only %d creations", n)
		}
		return nil
	})
}

// unharmed stops the load, and checks that nobody was refused.
func (l *load) unharmed(t *testing.T) {
	t.Helper()
	l.stop()
	if l.refused.Load() > 0 {
		t.Errorf("of %d creations, %d were refused", l.made.Load(), l.refused.Load())
	}
}

// hasty makes a server renew its certificates as often as the overlap allows: they
// are backdated by 5 min, and renewed when a third of all their time is left.
func hasty(l webhook.Local) webhook.Local {
	l.Lifetime, l.CheckEvery, l.Overlap = 140*time.Second, 100*time.Millisecond, 3*time.Second
	return l
}

func TestNobodyNoticesRotations(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	op.Settings.Admission.Server = hasty(webhook.Local{Addr: "127.0.0.1"})
	var validated, mutated atomic.Int32
	x := gopf.For[*Thing](op, w.things())
	x.Validate("check", func(context.Context, *review) error { validated.Add(1); return nil })
	x.Mutate("change", func(context.Context, *review) error { mutated.Add(1); return nil })
	o := w.run(op)
	l := w.load()
	kit.Eventually(t, func() error {
		if n := len(o.Log.With("The webhook server has a new certificate.")); n < 3 {
			return fmt.Errorf("%d rotations", n)
		}
		return nil
	})
	l.goesOn(t)
	l.unharmed(t)
	if validated.Load() != l.made.Load() || mutated.Load() != l.made.Load() {
		t.Errorf("%d creations, but %d and %d reviews", l.made.Load(), validated.Load(), mutated.Load())
	}
}

func TestNobodyIsRefusedWhenTheOperatorStops(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	x.Validate("check", func(context.Context, *review) error { return nil })
	x.Mutate("change", func(context.Context, *review) error { return nil })
	o := w.run(op)
	l := w.load()
	l.goesOn(t)
	o.Stop()
	l.goesOn(t)
	l.unharmed(t)
	if len(w.webhooks(validating))+len(w.webhooks(mutating)) != 0 {
		t.Error("webhooks are left")
	}
}

// balancer stands for a Service: it forwards connections to the replicas that are
// its endpoints at the time.
type balancer struct {
	port int
	mu   sync.Mutex
	to   []int // ports
	next int
}

func newBalancer(t *testing.T) *balancer {
	t.Helper()
	l, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	b := &balancer{port: l.Addr().(*net.TCPAddr).Port}
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			go b.forward(conn)
		}
	}()
	return b
}

// set makes the ports the endpoints for new connections.
func (b *balancer) set(ports ...int) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.to = ports
}

func (b *balancer) forward(conn net.Conn) {
	defer conn.Close()
	b.mu.Lock()
	if len(b.to) == 0 {
		b.mu.Unlock()
		return
	}
	b.next++
	port := b.to[b.next%len(b.to)]
	b.mu.Unlock()
	backend, err := net.Dial("tcp", fmt.Sprintf("127.0.0.1:%d", port))
	if err != nil {
		return
	}
	defer backend.Close()
	done := make(chan struct{}, 2)
	for _, way := range [][2]net.Conn{{conn, backend}, {backend, conn}} {
		go func() {
			_, _ = io.Copy(way[0], way[1]) // either end may go at any time
			done <- struct{}{}
		}()
	}
	<-done
}

// freePort is one that nobody listens at, for now.
func freePort(t *testing.T) int {
	t.Helper()
	_, port, err := net.SplitHostPort(kit.FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	number, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	return number
}

// service makes the Service that stands for the one of a Deployment.
func (w *world) service() {
	w.t.Helper()
	w.make(services, w.namespace, "operator", fields{"spec": fields{"type": "ExternalName", "externalName": "localhost"}})
}

func TestOperatorsAreReachedThroughServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service()
	port := freePort(t)
	op := w.operator()
	op.Settings.Admission.Server = webhook.Service{
		Name: "operator", Namespace: w.namespace, Port: port, Listen: hasty(webhook.Local{Addr: "127.0.0.1", Port: port, Path: "/hooks"}),
	}
	gopf.For[*Thing](op, w.things()).Validate("Check_It", func(_ context.Context, r *review) error {
		if r.Object.Spec.Field == "bad" {
			return gopf.Deny("bad")
		}
		return nil
	})
	o := w.run(op)
	client := w.webhooks(validating)["check-it."+w.managed]["clientConfig"].(fields)
	if got := client["service"].(fields); got["name"] != "operator" || got["namespace"] != w.namespace || client["url"] != nil {
		t.Errorf("the API server is told %v", client)
	}
	_, err := w.try(cluster).create("a", spec(fields{"field": "bad"}))
	denied(t, err, http.StatusForbidden, "bad")
	secret := w.must(w.client(secrets, w.namespace).Get(w.ctx(), "operator-webhook", metav1.GetOptions{}))
	if data := secret.Object["data"].(fields); data["tls.key"] == nil || data["tls.crt"] == nil {
		t.Error("the Secret has no certificate")
	}
	l := w.load()
	o.Log.WaitFor(t, "The webhook server has a new certificate.")
	l.goesOn(t)
	l.unharmed(t)
}

func TestReplicasShareTheirCertificateAndMayStop(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.service()
	b := newBalancer(t)
	ports := []int{freePort(t), freePort(t)}
	reviews := make([]atomic.Int32, 2)
	var replicas []*running
	for i, port := range ports {
		op := w.operator()
		op.Settings.Admission.Server = webhook.Service{
			Name: "operator", Namespace: w.namespace, Port: b.port, Listen: webhook.Local{Addr: "127.0.0.1", Port: port},
		}
		// Persistent: what the replica that stops leaves behind is what the others need.
		gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { reviews[i].Add(1); return nil }, gopf.Persistent())
		o := w.start(op)
		o.Log.WaitFor(t, "The webhook server is announced.")
		replicas = append(replicas, o)
	}
	certificate := func() any {
		return w.must(w.client(secrets, w.namespace).Get(w.ctx(), "operator-webhook", metav1.GetOptions{})).Object["data"].(fields)["tls.crt"]
	}
	b.set(ports[0])
	w.asked(true)
	before := certificate()
	l := w.load()
	l.goesOn(t)
	// A pod that is told to stop leaves the Service a little later.
	stopped := make(chan struct{})
	go func() { replicas[0].Stop(); close(stopped) }()
	time.Sleep(500 * time.Millisecond)
	b.set(ports[1])
	<-stopped
	l.goesOn(t)
	l.unharmed(t)
	if total := reviews[0].Load() + reviews[1].Load(); total != l.made.Load() || reviews[1].Load() == 0 {
		t.Errorf("%d creations, but %d and %d reviews", l.made.Load(), reviews[0].Load(), reviews[1].Load())
	}
	if certificate() != before {
		t.Error("the certificate was replaced")
	}
	w.asked(true) // the rest of the webhooks is back, too
}

// Whoever has webhooks configured by others is not told of the end, but needs time
// to notice it, too.
func TestReplicasMayStopUnderConfigurationsOfOthers(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	b := newBalancer(t)
	ports := []int{freePort(t), freePort(t)}
	keys := &webhook.MemoryStore{}
	var announced atomic.Pointer[webhook.ClientConfig]
	var replicas []*running
	for _, port := range ports {
		op := gopf.New()
		gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return nil })
		server := webhook.Service{Name: "x", Namespace: "x", Keys: keys, Listen: webhook.Local{Addr: "127.0.0.1", Port: port, ExtraNames: []string{"localhost"}}}
		op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
			return server.Serve(ctx, reviews, func(c webhook.ClientConfig) { announced.Store(&c); announce(c) })
		})
		o := w.start(op)
		o.Log.WaitFor(t, "The webhook server is announced.")
		replicas = append(replicas, o)
	}
	b.set(ports[0])
	w.must(w.client(validating, "").Create(w.ctx(), &unstructured.Unstructured{Object: fields{
		"apiVersion": "admissionregistration.k8s.io/v1", "kind": "ValidatingWebhookConfiguration", "metadata": fields{"name": w.managed},
		"webhooks": []any{fields{
			"name": "check." + w.managed, "sideEffects": "None", "admissionReviewVersions": []any{"v1"},
			"clientConfig": fields{"url": fmt.Sprintf("https://localhost:%d/check", b.port), "caBundle": announced.Load().CABundle},
			"rules":        []any{fields{"apiGroups": []any{w.group}, "apiVersions": []any{"*"}, "resources": []any{"things"}, "operations": []any{"*"}}},
		}},
	}}, metav1.CreateOptions{}))
	l := w.load()
	l.goesOn(t)
	stopped := make(chan struct{})
	go func() { replicas[0].Stop(); close(stopped) }()
	time.Sleep(500 * time.Millisecond)
	b.set(ports[1])
	<-stopped
	l.goesOn(t)
	l.unharmed(t)
}

func TestOperatorsThatCannotServeReviewsSayWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	taken, err := (&net.ListenConfig{}).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	for name, test := range map[string]struct {
		server webhook.Server
		want   []string
	}{
		"no server": {nil, []string{"Settings.Admission.Server", "webhook.Service", "webhook.Local", "webhook.Auto", "--dev"}},
		"the port is taken": {webhook.Local{Addr: "127.0.0.1", Port: taken.Addr().(*net.TCPAddr).Port},
			[]string{"the webhook server has ended", "listen for webhooks", taken.Addr().String(), "address already in use"}},
		"it gives up": {webhook.Func(func(context.Context, http.Handler, func(webhook.ClientConfig)) error { return nil }),
			[]string{"the webhook server has ended", "before it was told to"}},
		"half a certificate": {webhook.Local{CertFile: "x"}, []string{"CertFile", "KeyFile"}},
		"no such file":       {webhook.Local{CertFile: "/no/such/file", KeyFile: "/no/such/key"}, []string{"/no/such/file"}},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.within(t)
			op := gopf.New()
			gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return nil })
			op.Settings.Admission.Server, op.Settings.Admission.Managed = test.server, w.managed
			got := w.start(op).fails()
			for _, want := range test.want {
				if !strings.Contains(got, want) {
					t.Errorf("%q is not in %q", want, got)
				}
			}
		})
	}
}

func TestAServerThatFailsBlocksNobody(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	fail := make(chan struct{})
	op.Settings.Admission.Server = webhook.Func(func(ctx context.Context, reviews http.Handler, announce func(webhook.ClientConfig)) error {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		go func() { <-fail; cancel() }()
		if err := (webhook.Local{Addr: "127.0.0.1"}).Serve(ctx, reviews, announce); err != nil {
			return err
		}
		return errors.New("the tunnel has collapsed")
	})
	gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return nil })
	o := w.start(op)
	w.asked(true)
	close(fail)
	if got := o.fails(); !strings.Contains(got, "the tunnel has collapsed") {
		t.Errorf("got %s", got)
	}
	w.asked(false)
	w.must(w.try(cluster).create("a", fields{}))
}

func TestDevelopersNeedNoServer(t *testing.T) { // and share one name: not parallel
	w := newWorld(t)
	op := gopf.New()
	w.probes(op)
	op.Settings.Admission.Dev = true
	o := w.run(op)
	if len(o.Log.With("[INFO", "using a local one with a self-signed certificate for development")) == 0 {
		t.Error("it is not said")
	}
	o.Stop()
	w.managed = "dev.gopf.dev" // it is removed, too
	if left := slices.Concat(names(w.webhooks(validating)), names(w.webhooks(mutating))); len(left) > 0 {
		t.Errorf("left at the end: %q", left)
	}
}

func names(of map[string]fields) (all []string) {
	for name := range of {
		all = append(all, name)
	}
	return all
}
