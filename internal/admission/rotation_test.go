package admission

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/test/e2e/kit"
	"gopf.dev/gopf/webhook"
)

// load creates things until it is stopped, and counts refused requests.
func (w *world) load() (stop func() (made, refused int)) {
	ctx, cancel := context.WithCancel(w.ctx)
	var made, refused atomic.Int32
	var running sync.WaitGroup
	for worker := range 2 {
		running.Go(func() {
			for i := 0; ctx.Err() == nil; i++ {
				// A dry run stores nothing, but triggers all reviews.
				_, err := w.WithBackoffs(nil).Create(context.WithoutCancel(ctx), kube.Target{Info: w.things, Namespace: w.namespace},
					[]byte(w.thing(fmt.Sprintf("load-%d-%d", worker, i), "")), kube.DryRun())
				if made.Add(1); err != nil && refused.Add(1) == 1 {
					w.t.Errorf("creation %d: %v", i, err)
				}
			}
		})
	}
	return func() (int, int) {
		cancel()
		running.Wait()
		return int(made.Load()), int(refused.Load())
	}
}

// bundle returns the CA bundle in the configuration.
func (w *world) bundle() any {
	w.t.Helper()
	client := webhooks(w.configuration(false))[0].(map[string]any)["clientConfig"].(map[string]any)
	return client["caBundle"]
}

func TestClusterReviewsDuringCertificateRotation(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	var asked atomic.Int32
	// A certificate is backdated by 5 minutes. A third of its whole validity is therefore
	// more than its remaining time, so it is renewed all the time.
	_, stop := w.control(webhook.Local{Lifetime: 140 * time.Second, CheckEvery: 100 * time.Millisecond, Overlap: 3 * time.Second},
		w.handler("check", handler.Admission{}, func(context.Context, *handler.Request) error { asked.Add(1); return nil }),
		w.handler("change", handler.Admission{Mutating: true}, func(context.Context, *handler.Request) error { return nil }))
	finish := w.load()
	bundles := map[any]bool{}
	w.eventually("there were three rotations", func() bool {
		bundles[w.bundle()] = true
		return len(bundles) >= 6
	})
	made, refused := finish()
	t.Logf("%d creations, %d bundles", made, len(bundles))
	if refused > 0 || made < 20 || int(asked.Load()) != made {
		t.Errorf("%d creations, of which %d were refused; asked %d times", made, refused, asked.Load())
	}
	stop()
}

func TestClusterLosesNoReviewAtShutdown(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.linger = 3 * time.Second // on a busy machine, an API server may notice late
	_, stop := w.control(webhook.Local{},
		w.handler("check", handler.Admission{}, func(context.Context, *handler.Request) error { return nil }),
		w.handler("change", handler.Admission{Mutating: true}, func(context.Context, *handler.Request) error { return nil }))
	finish := w.load()
	time.Sleep(500 * time.Millisecond)
	stop()
	if made, refused := finish(); refused > 0 || made == 0 {
		t.Errorf("%d creations, of which %d were refused", made, refused)
	}
}

// freePort returns a port that is not in use now.
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

func TestClusterReachesServices(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	w.create(kube.Target{Info: services, Namespace: w.namespace},
		`{"metadata":{"name":"operator"},"spec":{"type":"ExternalName","externalName":"localhost"}}`)
	port := freePort(t)
	server := webhook.Service{
		Name: "operator", Namespace: w.namespace, Port: port,
		Listen: webhook.Local{Port: port, Path: "hooks", CheckEvery: 200 * time.Millisecond, Overlap: 3 * time.Second, Lifetime: 140 * time.Second},
	}
	_, stop := w.control(server, w.handler("Some_Check!", handler.Admission{}, func(_ context.Context, r *handler.Request) error {
		if r.Body.Name == "bad" {
			return errors.New("refused")
		}
		return nil
	}))
	_, err := w.WithBackoffs(nil).Create(w.ctx, kube.Target{Info: w.things, Namespace: w.namespace}, []byte(w.thing("bad", "")))
	if err == nil {
		t.Error("a request that must be denied was allowed")
	}

	// Replicas share the certificates, and renewals do not disturb reviews.
	store := NewSecretStore(w.Client, w.namespace, "operator-webhook")
	first, _, err := store.Load(w.ctx)
	if err != nil || len(first["tls.key"]) == 0 {
		t.Fatalf("the Secret has %v (%v)", slices.Collect(maps.Keys(first)), err)
	}
	finish := w.load()
	ctx, cancel := context.WithCancel(w.ctx)
	other := server
	other.Listen.Port = 0 // it only renews certificates
	ended := make(chan error, 1)
	go func() {
		ended <- other.Bind(webhook.Environment{Log: discard(), Secrets: func(namespace, name string) webhook.KeyStore {
			return NewSecretStore(w.Client, namespace, name)
		}}).Serve(ctx, NewReviewer(nil, DefaultReviewerOptions()), func(webhook.ClientConfig) {})
	}()
	served := map[string]bool{}
	w.eventually("the certificate was renewed twice", func() bool {
		items, _, err := store.Load(w.ctx)
		if err == nil {
			served[string(items["tls.crt"])] = true
		}
		return len(served) >= 3
	})
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if made, refused := finish(); refused > 0 || made < 20 {
		t.Errorf("%d creations, of which %d were refused", made, refused)
	}
	stop()
}

func TestClusterSecretsAreSavedOnce(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	one, two := NewSecretStore(w.Client, w.namespace, "keys"), NewSecretStore(w.Client, w.namespace, "keys")
	if items, version, err := one.Load(w.ctx); err != nil || items != nil || version != "" {
		t.Fatalf("got %v, %q, %v", items, version, err)
	}
	if err := one.Save(w.ctx, map[string][]byte{"a": []byte("1"), "b": []byte("2")}, ""); err != nil {
		t.Fatal(err)
	}
	if err := two.Save(w.ctx, map[string][]byte{"a": []byte("x")}, ""); !errors.Is(err, webhook.ErrConflict) {
		t.Errorf("two creations: got %v", err)
	}
	_, version, _ := one.Load(w.ctx)
	wanted := map[string][]byte{"a": []byte("3")}
	if err := one.Save(w.ctx, wanted, version); err != nil {
		t.Fatal(err)
	}
	if err := two.Save(w.ctx, map[string][]byte{"a": []byte("x")}, version); !errors.Is(err, webhook.ErrConflict) {
		t.Errorf("two changes: got %v", err)
	}
	items, version, err := two.Load(w.ctx)
	if d := cmp.Diff(wanted, items); d != "" || err != nil {
		t.Errorf("%s (%v)", d, err)
	}
	if err := w.Delete(w.ctx, secret(w.namespace, "keys"), kube.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := two.Save(w.ctx, wanted, version); !errors.Is(err, webhook.ErrConflict) {
		t.Errorf("a deleted one: got %v", err)
	}
	if err := NewSecretStore(w.Client, "no-such-namespace", "keys").Save(w.ctx, wanted, ""); err == nil || errors.Is(err, webhook.ErrConflict) {
		t.Errorf("nowhere: got %v", err)
	}
}

func TestClusterHasAnOrdinaryCertificate(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	c := cluster{w.Client}
	cert, err := c.Certificate(w.ctx)
	if err != nil {
		t.Fatal(err)
	}
	version, err := c.Version(w.ctx)
	if err != nil || version == "" || webhook.Detect(cert, version) != "" {
		t.Errorf("got %s, %v, %q", version, err, webhook.Detect(cert, version))
	}
	_, stop := w.control(webhook.Auto{})
	stop()
}
