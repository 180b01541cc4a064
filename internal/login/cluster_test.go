package login

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

var (
	namespaces      = kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
	secrets         = kind.Info{Version: "v1", Plural: "secrets", Kind: "Secret", Namespaced: true}
	configMaps      = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	serviceAccounts = kind.Info{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true}
	roleBindings    = kind.Info{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: "rolebindings", Kind: "RoleBinding", Namespaced: true}
)

// realm is a namespace of a real cluster, with an administrator's client.
type realm struct {
	t     *testing.T
	ctx   context.Context
	admin *kube.Client
	cfg   *rest.Config // without credentials
	ns    string
}

func newRealm(t *testing.T) *realm {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	cfg, _, err := kube.LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	r := &realm{t: t, cfg: rest.AnonymousClientConfig(cfg)}
	if r.admin, err = kube.NewClient(cfg, kube.DefaultOptions()); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.admin.Close)
	var cancel context.CancelFunc
	r.ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	b, err := r.admin.Create(r.ctx, kube.Target{Info: namespaces}, []byte(`{"metadata":{"generateName":"login-test-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	r.ns = b.Name
	t.Cleanup(func() {
		if err := r.admin.Delete(context.WithoutCancel(r.ctx), kube.Target{Info: namespaces, Name: r.ns}, kube.DeleteOptions{}); err != nil {
			t.Error(err)
		}
	})
	return r
}

func (r *realm) create(info kind.Info, format string, args ...any) {
	r.t.Helper()
	if _, err := r.admin.Create(r.ctx, kube.Target{Info: info, Namespace: r.ns}, fmt.Appendf(nil, format, args...)); err != nil {
		r.t.Fatal(err)
	}
}

func (r *realm) delete(info kind.Info, name string) {
	r.t.Helper()
	if err := r.admin.Delete(r.ctx, kube.Target{Info: info, Namespace: r.ns, Name: name}, kube.DeleteOptions{}); err != nil {
		r.t.Fatal(err)
	}
}

// account creates a service account that may read and write.
func (r *realm) account(name string) {
	r.create(serviceAccounts, `{"metadata":{"name":%q}}`, name)
	r.create(roleBindings, `{"metadata":{"name":%q},"subjects":[{"kind":"ServiceAccount","name":%q}],
		"roleRef":{"apiGroup":"rbac.authorization.k8s.io","kind":"ClusterRole","name":"edit"}}`, name, name)
}

// token creates a token that is valid as long as its secret exists.
func (r *realm) token(account, secret string) string {
	r.t.Helper()
	r.create(secrets, `{"metadata":{"name":%q}}`, secret)
	b, err := r.admin.Create(r.ctx, kube.Target{Info: serviceAccounts, Namespace: r.ns, Name: account, Subresource: "token"},
		fmt.Appendf(nil, `{"spec":{"boundObjectRef":{"apiVersion":"v1","kind":"Secret","name":%q}}}`, secret))
	if err != nil {
		r.t.Fatal(err)
	}
	token, _ := b.Lookup("status", "token")
	return token.(string)
}

// until creates objects and reads them with the client until over returns true.
func (r *realm) until(client *kube.Client, over func() bool) (made []string) {
	r.t.Helper()
	for after := 5; after > 0; { // and some more afterwards
		if over() {
			after--
		}
		name := fmt.Sprintf("m%03d", len(made))
		r.create(configMaps, `{"metadata":{"name":%q,"labels":{"own":"yes"}}}`, name)
		made = append(made, name)
		if _, err := client.Get(r.ctx, kube.Target{Info: configMaps, Namespace: r.ns, Name: name}); err != nil {
			r.t.Fatal(err)
		}
		time.Sleep(200 * time.Millisecond)
	}
	return made
}

// follow runs a stream. The returned function ends it when all objects were delivered,
// and returns the events.
func (r *realm) follow(client *kube.Client) (end func(made []string) []string) {
	var mu sync.Mutex
	var got []string
	ctx, stop := context.WithCancel(r.ctx)
	cfg := stream.DefaultConfig(configMaps, r.ns)
	cfg.Selector = "own=yes"
	var running sync.WaitGroup
	running.Go(func() {
		_ = stream.New(client, cfg).Run(ctx, func(e stream.Event) {
			mu.Lock()
			defer mu.Unlock()
			if e.Body != nil {
				got = append(got, e.Body.Name)
			} else {
				got = append(got, e.Type.String())
			}
		})
	})
	for synced := false; !synced && ctx.Err() == nil; time.Sleep(10 * time.Millisecond) {
		mu.Lock()
		synced = len(got) > 0
		mu.Unlock()
	}
	return func(made []string) []string {
		last := func() bool {
			mu.Lock()
			defer mu.Unlock()
			return slices.Contains(got, made[len(made)-1])
		}
		for !last() && ctx.Err() == nil {
			time.Sleep(50 * time.Millisecond)
		}
		stop()
		running.Wait()
		return got
	}
}

func TestATokenFileOfARealClusterIsReplaced(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	r.account("one")
	file := filepath.Join(t.TempDir(), "token")
	write := func(token string) {
		t.Helper()
		if err := os.WriteFile(file+".new", []byte(token), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Rename(file+".new", file); err != nil {
			t.Fatal(err)
		}
	}
	write(r.token("one", "s1"))
	cfg := rest.CopyConfig(r.cfg)
	cfg.BearerTokenFile = file
	refused := 0
	o := kube.DefaultOptions()
	o.Unauthorized = func(*rest.Config, error) { refused++ }
	var mu sync.Mutex
	codes := map[int]int{}
	o.Observe = func(o kube.Observation) {
		mu.Lock()
		defer mu.Unlock()
		codes[o.Code]++
	}
	client, err := kube.NewClient(cfg, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	end := r.follow(client)
	write(r.token("one", "s2"))
	r.delete(secrets, "s1")
	// The server caches tokens for 10 s.
	began := time.Now()
	made := r.until(client, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return codes[401] > 0 || time.Since(began) > 20*time.Second
	})
	got := end(made)
	if diff := cmp.Diff(append([]string{"SYNCED"}, made...), got); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
	if codes[401] != 1 || refused != 0 {
		t.Errorf("%d responses were 401, and Unauthorized was called %d times", codes[401], refused)
	}
}

func TestATokenOfARealClusterBecomesInvalid(t *testing.T) {
	t.Parallel()
	r := newRealm(t)
	r.account("one")
	r.account("two")
	creds := func(token string) map[string]*Credentials {
		cfg := rest.CopyConfig(r.cfg)
		cfg.BearerToken = token
		return map[string]*Credentials{"sa": {Config: cfg, Namespace: r.ns}}
	}
	first, second := creds(r.token("one", "s1")), creds(r.token("two", "s2"))
	var mu sync.Mutex
	logins := 0
	var states []bool
	v := New(Config{
		Log: slog.Default(),
		Login: func(context.Context) (map[string]*Credentials, error) {
			mu.Lock()
			defer mu.Unlock()
			if logins++; logins <= 2 { // the same token at first
				return first, nil
			}
			return second, nil
		},
		Status: func(s Status) {
			mu.Lock()
			defer mu.Unlock()
			states = append(states, s.Err != nil)
		},
	})
	begin, err := v.Login(r.ctx)
	if err != nil {
		t.Fatal(err)
	}
	o := kube.DefaultOptions()
	o.Unauthorized = v.Unauthorized
	client, err := kube.NewClient(begin.Config, o)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	ctx, stop := context.WithCancel(r.ctx)
	var running sync.WaitGroup
	running.Go(func() { v.Run(ctx, client) })
	end := r.follow(client)

	r.delete(serviceAccounts, "one")
	made := r.until(client, func() bool {
		mu.Lock()
		defer mu.Unlock()
		return logins >= 3
	})
	got := end(made)
	stop()
	running.Wait()
	if diff := cmp.Diff(append([]string{"SYNCED"}, made...), got); diff != "" {
		t.Errorf("events: -want +got\n%s", diff)
	}
	if diff := cmp.Diff([]bool{true, false}, states); diff != "" {
		t.Errorf("states: -want +got\n%s", diff)
	}
}
