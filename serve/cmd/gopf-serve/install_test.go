package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/serve"
)

// installable returns a folder with the sample and a definition of its own.
func installable(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(sample)); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"operator.yaml", "crd.yaml"} {
		text, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(strings.ReplaceAll(string(text), "example.com", "install.example.com")), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// waitApplied waits for the request that applies the definition.
func waitApplied(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	applied := func(r gopftest.Request) bool {
		path, _, _ := strings.Cut(r.Path, "?")
		return r.Verb == "patch" && strings.HasSuffix(path, "/customresourcedefinitions/databases.install.example.com")
	}
	for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(c.Requests(), applied); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("the definition was not applied")
		}
	}
}

func TestTheReloadOfDevAppliesTheDefinitions(t *testing.T) {
	dir := installable(t)
	c := gopftest.NewCluster(t, "v1/configmaps", "v1/services")
	ctx, stop := context.WithCancel(t.Context())
	args := []string{filepath.Join(dir, "operator.yaml"), "--install", "-n", "default", "--kubeconfig", c.Kubeconfig(t)}
	ended := make(chan int, 1)
	go func() { ended <- reload(ctx, args, io.Discard, io.Discard) }()
	waitApplied(t, c)
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("the exit code is %d", code)
	}
}

// TestInstallAppliesTheDefinitionsOnAnyCluster serves the sample with a definition of its own.
// A cluster in memory cannot apply definitions: there, only the request is checked.
func TestInstallAppliesTheDefinitionsOnAnyCluster(t *testing.T) {
	dir := installable(t)
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	c := gopftest.AnyCluster(t, "v1/configmaps", "v1/services")
	ns := c.Namespace(t)
	installAtStartup(op, dir, "operator.yaml", []string{"-n", ns, "--kubeconfig", c.Kubeconfig(t)})
	op.Settings.Peering.Standalone = true // other tests define peerings
	gopftest.Start(t, op, c, gopf.Namespaces(ns))
	if !c.Real() {
		waitApplied(t, c)
		return
	}
	c.WaitList(t, "apiextensions.k8s.io/v1/customresourcedefinitions", "", func(list []*unstructured.Unstructured) bool {
		return slices.ContainsFunc(list, func(o *unstructured.Unstructured) bool {
			conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
			return o.GetName() == "databases.install.example.com" && len(conditions) > 1
		})
	})
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "install.example.com/v1", "kind": "Database", "metadata": map[string]any{"name": "db", "namespace": ns}, "spec": map[string]any{"size": int64(3)},
	}})
	c.Wait(t, "install.example.com/v1/databases", ns, "db", func(o *unstructured.Unstructured) bool {
		phase, _, _ := unstructured.NestedString(o.Object, "status", "phase")
		return phase == "Ready"
	})
}
