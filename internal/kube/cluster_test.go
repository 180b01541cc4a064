package kube

import (
	"context"
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// cluster returns a client of a real control plane. It skips the test if there is none.
func cluster(t *testing.T) (*Client, context.Context) {
	t.Helper()
	path := os.Getenv("GOPF_TEST_KUBECONFIG")
	if path == "" {
		t.Skip("GOPF_TEST_KUBECONFIG is not set")
	}
	cfg, _, err := LoadConfig(path, "")
	if err != nil {
		t.Fatal(err)
	}
	client, err := NewClient(cfg, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	return client, ctx
}

var (
	configMaps = kind.Info{Version: "v1", Plural: "configmaps", Kind: "ConfigMap", Namespaced: true}
	namespaces = kind.Info{Version: "v1", Plural: "namespaces", Kind: "Namespace"}
)

// namespace creates a namespace for one test.
func namespace(t *testing.T, ctx context.Context, client *Client) string {
	t.Helper()
	b, err := client.Create(ctx, Target{Info: namespaces}, []byte(`{"metadata":{"generateName":"kube-test-"}}`))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := client.Delete(context.WithoutCancel(ctx), Target{Info: namespaces, Name: b.Name}, DeleteOptions{UID: b.UID}); err != nil {
			t.Error(err)
		}
	})
	return b.Name
}

func createConfigMaps(t *testing.T, ctx context.Context, client *Client, ns string, from, to int) (last *object.Body) {
	t.Helper()
	for i := from; i < to; i++ {
		var err error
		last, err = client.Create(ctx, Target{Info: configMaps, Namespace: ns},
			fmt.Appendf(nil, `{"metadata":{"name":"m%03d","labels":{"own":"yes"}},"data":{"k":"v"}}`, i))
		if err != nil {
			t.Fatal(err)
		}
	}
	return last
}

func TestClusterDiscovery(t *testing.T) {
	client, ctx := cluster(t)
	if v, err := client.Version(ctx); err != nil || v.Major != "1" {
		t.Errorf("version: got %v, %v", v, err)
	}
	d, err := client.Discover(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if len(d.Failed) != 0 {
		t.Errorf("failed: %v", d.Failed)
	}
	for selector, check := range map[string]func(kind.Info) bool{
		"pods":        func(i kind.Info) bool { return i.Namespaced && i.HasStatus() && i.Can("watch") && i.Singular == "pod" },
		"deploy":      func(i kind.Info) bool { return i.String() == "deployments.v1.apps" && i.Kind == "Deployment" },
		"crd":         func(i kind.Info) bool { return !i.Namespaced && i.Group == "apiextensions.k8s.io" },
		"Namespace":   func(i kind.Info) bool { return !i.Namespaced && i.Plural == "namespaces" },
		"v1/services": func(i kind.Info) bool { return len(i.Categories) > 0 && i.Preferred },
	} {
		s, err := kind.Parse(selector)
		if err != nil {
			t.Fatal(err)
		}
		if got := s.Select(d.Resources); len(got) != 1 || !check(got[0]) {
			t.Errorf("%s: got %+v", selector, got)
		}
	}
}

func TestClusterWritesAndErrors(t *testing.T) {
	client, ctx := cluster(t)
	ns := namespace(t, ctx, client)
	made := createConfigMaps(t, ctx, client, ns, 0, 1)
	target := Target{Info: configMaps, Namespace: ns, Name: made.Name}

	patched, err := client.Patch(ctx, target, types.MergePatchType, []byte(`{"data":{"k":"w"}}`))
	if err != nil || patched.UID != made.UID || patched.ResourceVersion == made.ResourceVersion {
		t.Errorf("patch: got %v, %v", patched, err)
	}
	brief, err := client.PatchBriefly(ctx, target, types.MergePatchType, []byte(`{"data":{"k":"x"}}`))
	if err != nil {
		t.Error(err)
	}
	read, err := client.Get(ctx, target)
	if err != nil || read.ResourceVersion != brief {
		t.Errorf("got version %v, %v; the brief patch returned %s", read, err, brief)
	}
	if v, _ := read.Lookup("data", "k"); v != "x" {
		t.Errorf("data: got %v", v)
	}
	if _, has := read.Lookup("metadata", "managedFields"); has {
		t.Error("the object has managed fields")
	}
	applied, err := client.Patch(ctx, target, types.ApplyPatchType,
		[]byte(`{"apiVersion":"v1","kind":"ConfigMap","data":{"k":"y"}}`), FieldManager("kube-test"), Force())
	if v, _ := applied.Lookup("data", "k"); err != nil || v != "y" {
		t.Errorf("apply: got %v, %v", v, err)
	}

	_, err = client.Patch(ctx, target, types.MergePatchType, []byte(`{"metadata":{"resourceVersion":"1"}}`))
	if !apierrors.IsConflict(err) {
		t.Errorf("stale version: got %v", err)
	}
	_, err = client.Patch(ctx, target, types.JSONPatchType, []byte(`[{"op":"test","path":"/data/k","value":"z"}]`))
	if !apierrors.IsInvalid(err) {
		t.Errorf("failed test operation: got %v", err)
	}
	if err := client.Delete(ctx, target, DeleteOptions{UID: "other"}); !apierrors.IsConflict(err) {
		t.Errorf("delete with another uid: got %v", err)
	}
	if err := client.Delete(ctx, target, DeleteOptions{UID: made.UID}); err != nil {
		t.Errorf("delete: %v", err)
	}
	if _, err := client.Get(ctx, target); !apierrors.IsNotFound(err) {
		t.Errorf("get a deleted object: got %v", err)
	}
}

func TestClusterListsAndWatches(t *testing.T) {
	client, ctx := cluster(t)
	ns := namespace(t, ctx, client)
	createConfigMaps(t, ctx, client, ns, 0, 7)

	count := 0
	o := ListOptions{Selector: "own=yes", Limit: 3}
	version, err := client.List(ctx, configMaps, ns, o, func(b *object.Body) error {
		if b.Kind != "ConfigMap" || b.APIVersion != "v1" || b.UID == "" {
			return fmt.Errorf("got %+v", b.Identity)
		}
		count++
		return nil
	})
	if err != nil || count != 7 {
		t.Fatalf("list: got %d, %v", count, err)
	}

	initial, err := client.Watch(ctx, configMaps, ns, WatchOptions{SendInitialEvents: true, Selector: "own=yes"})
	if err != nil {
		t.Fatal(err)
	}
	defer initial.Close()
	for count = 0; ; count++ {
		e, err := initial.Next()
		if err != nil {
			t.Fatal(err)
		}
		if e.InitialEnd {
			break
		}
		if e.Type != Added {
			t.Errorf("got %+v", e)
		}
	}
	if count != 7 {
		t.Errorf("initial events: got %d", count)
	}

	last := createConfigMaps(t, ctx, client, ns, 7, 8)
	for name, options := range map[string]WatchOptions{"watch": {ResourceVersion: version, Selector: "own=yes"},
		"probe": {ResourceVersion: version, Selector: "own=yes", Probe: true, ServerTimeout: time.Second}} {
		w, err := client.Watch(ctx, configMaps, ns, options)
		if err != nil {
			t.Fatal(err)
		}
		if e, err := w.Next(); err != nil || e.Type != Added || e.Body.Identity != last.Identity {
			t.Errorf("%s: got %+v, %v", name, e, err)
		}
		if name == "probe" { // the server ends it
			for err == nil {
				_, err = w.Next()
			}
			if ctx.Err() != nil {
				t.Error("the probe did not end")
			}
		}
		w.Close()
	}
	if e, err := initial.Next(); err != nil || e.Body.Identity != last.Identity {
		t.Errorf("after the initial events: got %+v, %v", e, err)
	}

	old, err := client.Watch(ctx, configMaps, ns, WatchOptions{ResourceVersion: "1"})
	if err == nil {
		e, nextErr := old.Next()
		old.Close()
		if err = nextErr; err == nil && e.Status != nil {
			err = &apierrors.StatusError{ErrStatus: *e.Status}
		}
	}
	if err != nil && !apierrors.IsResourceExpired(err) && !apierrors.IsGone(err) {
		t.Errorf("an old version: got %v", err)
	}
}

func TestClusterRefusals(t *testing.T) {
	client, ctx := cluster(t)
	cfg, _, err := LoadConfig(os.Getenv("GOPF_TEST_KUBECONFIG"), "")
	if err != nil {
		t.Fatal(err)
	}
	cfg.Impersonate.UserName = "nobody"
	nobody, err := NewClient(cfg, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer nobody.Close()
	if _, err := nobody.Watch(ctx, configMaps, "", WatchOptions{}); !apierrors.IsForbidden(err) {
		t.Errorf("without permission: got %v", err)
	}

	cfg.Impersonate.UserName = ""
	cfg.CertData, cfg.CertFile, cfg.KeyData, cfg.KeyFile, cfg.BearerToken = nil, "", nil, "", "wrong"
	short, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	stranger, err := NewClient(cfg, DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	defer stranger.Close()
	_, err = stranger.Version(short)
	if !apierrors.IsUnauthorized(err) || !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("with a wrong token: got %v", err)
	}

	ghosts := kind.Info{Group: "ghost.dev", Version: "v1", Plural: "ghosts", Kind: "Ghost"}
	if _, err := client.Watch(ctx, ghosts, "", WatchOptions{}); !apierrors.IsNotFound(err) {
		t.Errorf("no such kind: got %v", err)
	}
}

func TestClusterNamesTheFieldManagersOfAnObject(t *testing.T) {
	client, ctx := cluster(t)
	target := Target{Info: configMaps, Namespace: namespace(t, ctx, client), Name: "a"}
	if _, err := client.Create(ctx, Target{Info: configMaps, Namespace: target.Namespace}, []byte(`{"metadata":{"name":"a"},"data":{"a":"b"}}`), FieldManager("maker")); err != nil {
		t.Fatal(err)
	}
	if _, err := client.Patch(ctx, target, types.MergePatchType, []byte(`{"metadata":{"annotations":{"a.example.com/x":"y"}}}`), FieldManager("neighbor")); err != nil {
		t.Fatal(err)
	}
	managers, err := client.Managers(ctx, target)
	if err != nil || len(managers) != 2 || managers[1].Manager != "neighbor" || managers[1].FieldsV1 == nil {
		t.Errorf("got %+v, %v", managers, err)
	}
}
