package main

import (
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

// TestInstallAppliesTheDefinitionsOnAnyCluster serves the sample with a definition of its own.
// A cluster in memory cannot apply definitions: there, only the request is checked.
func TestInstallAppliesTheDefinitionsOnAnyCluster(t *testing.T) {
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
	op, err := serve.New(os.DirFS(dir), "operator.yaml", serve.Dir(dir))
	if err != nil {
		t.Fatal(err)
	}
	c := gopftest.AnyCluster(t, "v1/configmaps", "v1/services")
	ns := c.Namespace(t)
	installAtStartup(op, dir, "operator.yaml", []string{"-n", ns, "--kubeconfig", c.Kubeconfig(t)})
	gopftest.Start(t, op, c, gopf.Namespaces(ns))
	if !c.Real() {
		applied := func(r gopftest.Request) bool {
			return r.Verb == "patch" && strings.HasSuffix(r.Path, "/customresourcedefinitions/databases.install.example.com")
		}
		for deadline := time.Now().Add(30 * time.Second); !slices.ContainsFunc(c.Requests(), func(r gopftest.Request) bool {
			r.Path, _, _ = strings.Cut(r.Path, "?")
			return applied(r)
		}); time.Sleep(10 * time.Millisecond) {
			if time.Now().After(deadline) {
				t.Fatal("the definition was not applied")
			}
		}
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
