package rbac

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/dev/manifests"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

// accounts creates service accounts on a real control plane, if there is one.
type accounts struct {
	t      *testing.T
	config *rest.Config
	client *kube.Client
	space  string
}

func newAccounts(t *testing.T) *accounts {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	config, _, err := kube.LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := kube.NewClient(config, kube.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	a := &accounts{t: t, config: config, client: client}
	a.space = a.namespace()
	return a
}

// namespace creates a namespace for the test.
func (a *accounts) namespace() string {
	a.t.Helper()
	b, err := a.client.Create(a.t.Context(), kube.Target{Info: namespaces}, []byte(`{"metadata":{"generateName":"access-test-"}}`))
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(func() {
		if err := a.client.Delete(context.WithoutCancel(a.t.Context()), kube.Target{Info: namespaces, Name: b.Name}, kube.DeleteOptions{UID: b.UID}); err != nil {
			a.t.Error(err)
		}
	})
	return b.Name
}

// login creates a service account and returns a client with its token.
func (a *accounts) login() *kube.Client {
	a.t.Helper()
	info := kind.Info{Version: "v1", Plural: "serviceaccounts", Kind: "ServiceAccount", Namespaced: true}
	account, err := a.client.Create(a.t.Context(), kube.Target{Info: info, Namespace: a.space}, []byte(`{"metadata":{"name":"operator"}}`))
	if err != nil {
		a.t.Fatal(err)
	}
	token, err := a.client.Create(a.t.Context(), kube.Target{Info: info, Namespace: a.space, Name: account.Name, Subresource: "token"},
		[]byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":3600}}`))
	if err != nil {
		a.t.Fatal(err)
	}
	text, _ := token.Lookup("status", "token")
	config := rest.AnonymousClientConfig(a.config)
	config.BearerToken = text.(string)
	client, err := kube.NewClient(config, kube.DefaultOptions())
	if err != nil {
		a.t.Fatal(err)
	}
	a.t.Cleanup(client.Close)
	return client
}

// apply applies manifests, and deletes the cluster-scoped ones after the test.
func (a *accounts) apply(yaml string) {
	a.t.Helper()
	path := filepath.Join(a.t.TempDir(), "rules.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		a.t.Fatal(err)
	}
	objects, err := manifests.Read(path)
	if err != nil {
		a.t.Fatal(err)
	}
	if err := manifests.Apply(a.t.Context(), a.config, objects, nil); err != nil {
		a.t.Fatal(err)
	}
	for _, o := range objects {
		if o.GetNamespace() != "" {
			continue
		}
		info := kind.Info{Group: "rbac.authorization.k8s.io", Version: "v1", Plural: strings.ToLower(o.GetKind()) + "s"}
		a.t.Cleanup(func() {
			if err := a.client.Delete(context.WithoutCancel(a.t.Context()), kube.Target{Info: info, Name: o.GetName()}, kube.DeleteOptions{}); err != nil {
				a.t.Error(err)
			}
		})
	}
}

// record collects log records as JSON.
type record struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (r *record) Write(p []byte) (int, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.text.Write(p)
}

// await waits for a record whose message has the prefix, and returns all records until
// then.
func (r *record) await(t *testing.T, message string) (records []map[string]any) {
	t.Helper()
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		r.mu.Lock()
		text := r.text.String()
		r.mu.Unlock()
		records = nil
		for line := range strings.Lines(text) {
			var fields map[string]any
			if err := json.Unmarshal([]byte(line), &fields); err != nil {
				t.Fatal(err)
			}
			records = append(records, fields)
			if strings.HasPrefix(fields["msg"].(string), message) {
				return records
			}
		}
	}
	t.Fatalf("no record starts with %q: %v", message, records)
	return nil
}

func TestClusterLogsMissingPermissionsAndPrintsTheirManifest(t *testing.T) {
	a := newAccounts(t)
	other := a.namespace()
	client := a.login()
	subject := SubjectOf("system:serviceaccount:" + a.space + ":operator")
	a.apply(Rules([]Missing{
		{Resource: "configmaps", Verbs: []string{"list", "watch"}, Namespaces: []string{a.space, other}},
		{Resource: "configmaps", Verbs: []string{"get", "patch"}, Namespaces: []string{a.space}},
		{Resource: "namespaces", Verbs: []string{"list"}},
	}, subject))

	log := &record{}
	granted := make(chan struct{}, 100)
	configMaps := kind.Info{Version: "v1", Plural: "configmaps", Namespaced: true, Verbs: []string{"get"}}
	deployments := kind.Info{Group: "apps", Version: "v1", Plural: "deployments", Namespaced: true, Subresources: []string{"status"}}
	r := NewReviewer(Config{
		API: client, Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
		Needs: func() []Need {
			return Needs([]Use{{Info: configMaps, Write: []string{"sync"}}, {Info: deployments, Look: []string{"look"}, Write: []string{"roll"}}},
				Framework{Definitions: true, Namespaces: true, Posting: true})
		},
		Namespaces: func() []string { return []string{a.space, other} },
		Granted:    func() { granted <- struct{}{} },
	})
	ctx, cancel := context.WithCancel(t.Context())
	var done sync.WaitGroup
	done.Go(func() { r.Run(ctx) })
	defer func() { cancel(); done.Wait() }()

	records := log.await(t, "To grant all")
	both := fmt.Sprintf("[%s %s]", min(a.space, other), max(a.space, other))
	want := map[string]bool{
		"[get] configmaps [" + other + "]": true, "[patch] configmaps [" + other + "]": true,
		"[list watch] deployments.apps " + both: true, "[patch] deployments.apps " + both: true, "[patch] deployments/status.apps " + both: true,
		"[list watch] customresourcedefinitions.apiextensions.k8s.io <nil>": true, "[watch] namespaces <nil>": true,
		"[create] events " + both: true,
	}
	for _, fields := range records[:len(records)-1] {
		text := fmt.Sprint(fields["verbs"], " ", fields["resource"], " ", fields["namespaces"])
		if !want[text] {
			t.Errorf("unexpected or duplicate: %s", text)
		}
		delete(want, text)
	}
	if len(want) > 0 {
		t.Errorf("not logged: %v", want)
	}

	a.apply(records[len(records)-1]["manifest"].(string))
	select {
	case <-granted:
	case <-time.After(time.Minute):
		t.Fatal("Granted was not called")
	}
	complete := func() bool {
		v := &review{needs: r.config.Needs(), namespaces: served(r.config.Namespaces()), allowed: map[question]bool{}}
		for _, questions := range []func() []question{v.wide, v.narrow} {
			if _, err := ask(t.Context(), client, questions(), 1000, v.allowed); err != nil {
				t.Fatal(err)
			}
		}
		missing, _ := v.collect(v.lacks)
		return len(missing) == 0
	}
	for deadline := time.Now().Add(20 * time.Second); !complete(); time.Sleep(100 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the printed manifest does not grant everything")
		}
	}
	// The permissions work for requests, not only in reviews.
	if _, err := client.Create(t.Context(), kube.Target{Info: events, Namespace: other}, fmt.Appendf(nil,
		`{"metadata":{"generateName":"x-"},"involvedObject":{"namespace":%q},"reason":"Test"}`, other)); err != nil {
		t.Error(err)
	}
	if _, err := client.Patch(t.Context(), kube.Target{Info: configMaps, Namespace: other, Name: "kube-root-ca.crt"},
		types.MergePatchType, []byte(`{"metadata":{"labels":{"a":"b"}}}`)); err != nil {
		t.Error(err)
	}
}
