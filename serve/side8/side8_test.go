package side8

import (
	"encoding/json"
	"log/slog"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/queue"
)

// vectors reads a file with recordings of the real Side8. The folder testdata has some of
// the cases; the variable GOPF_METACONTROLLER_VECTORS names another folder of that form.
func vectors(t *testing.T, name string, into any) {
	t.Helper()
	folder := os.Getenv("GOPF_METACONTROLLER_VECTORS")
	if folder == "" {
		folder = "testdata"
	}
	text, err := os.ReadFile(filepath.Join(folder, name))
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func TestObjectsBecomeVariablesAsInSide8(t *testing.T) {
	var file struct {
		Cases []struct {
			Name      string
			Object    json.RawMessage
			Variables map[string]string
			Order     []string
		}
	}
	vectors(t, "side8-env.json", &file)
	for _, c := range file.Cases {
		names, values, err := Environment(c.Object)
		if err != nil || !slices.Equal(names, c.Order) || !maps.Equal(values, c.Variables) {
			t.Errorf("%s: got %v, %v, %v", c.Name, names, values, err)
		}
	}
	if len(file.Cases) == 0 {
		t.Error("there are no cases")
	}
}

// scriptsOf writes the scripts of a case.
func scriptsOf(t *testing.T, apply, remove string) Options {
	t.Helper()
	dir := t.TempDir()
	o := Options{Group: "db.side8.io", Version: "v1", Resource: "things", Apply: filepath.Join(dir, "apply"), Delete: filepath.Join(dir, "delete")}
	for path, text := range map[string]string{o.Apply: apply, o.Delete: remove} {
		if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o700); err != nil { //nolint:gosec // it must be executable
			t.Fatal(err)
		}
	}
	return o
}

func TestStepsAreThoseOfSide8(t *testing.T) {
	var file struct {
		Cases []struct {
			Name, Apply, Delete string
			Object              map[string]any
			Patches             []map[string]any
		}
	}
	vectors(t, "side8-steps.json", &file)
	for _, c := range file.Cases {
		t.Run(c.Name, func(t *testing.T) {
			s := &scripts{options: scriptsOf(t, c.Apply, c.Delete), slots: queue.NewSlots(1)}
			obj := &unstructured.Unstructured{Object: c.Object}
			change, err := Step(obj, func(script Script) (any, error) {
				path := map[Script]string{Apply: s.options.Apply, Delete: s.options.Delete}[script]
				return s.run(t.Context(), slog.New(slog.DiscardHandler), obj, path)
			})
			if err != nil && len(c.Patches) > 0 {
				t.Fatal(err)
			}
			patches := []any{}
			patch := map[string]any{}
			if change.Ran {
				patch["status"] = change.Status
			}
			switch others := others(obj); {
			case change.Hold: // a replacement keeps the finalizers of others; Side8 overwrites them
				patch["metadata"] = map[string]any{"finalizers": []any{Finalizer}}
			case change.Release:
				patch["metadata"] = map[string]any{"finalizers": others}
			}
			if len(patch) > 0 {
				patches = append(patches, patch)
			}
			want := []any{}
			for _, p := range c.Patches {
				want = append(want, p)
			}
			if !diff.Equal(patches, want) {
				t.Errorf("got %v, not %v", patches, want)
			}
		})
	}
	if len(file.Cases) == 0 {
		t.Error("there are no cases")
	}
}

func others(obj *unstructured.Unstructured) []any {
	list := []any{}
	for _, f := range obj.GetFinalizers() {
		if f != Finalizer {
			list = append(list, f)
		}
	}
	return list
}

func TestYAMLIsThatOfVersion11WithoutTags(t *testing.T) {
	for text, want := range map[string]any{"a: yes": map[string]any{"a": true}, "off": false, "'no'": "no", "": nil, "3": 3.0, "# c": nil} {
		if got, err := Parse([]byte(text)); err != nil || !diff.Equal(got, want) {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"a: b: c", "a: 1\n---\nb: 2\n", "{"} {
		if got, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: got %v", text, got)
		}
	}
}

func TestAnObjectLivesUnderTheScripts(t *testing.T) {
	dir := t.TempDir()
	o := scriptsOf(t, `test -e `+dir+`/failed || { touch `+dir+`/failed; echo no >&2; exit 3; }
echo "phase: ready"; echo "size: $K8S_SPEC_SIZE"`, `test "$K8S_STATUS_PHASE" = draining || echo "phase: draining"`)
	op := gopf.New(gopf.Identity("side8.example.com"))
	Declare(op, o)
	const things = "db.side8.io/v1/things"
	c := gopftest.NewCluster(t, things)
	gopftest.Start(t, op, c)
	c.Create(t, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "db.side8.io/v1", "kind": "Thing",
		"metadata": map[string]any{"name": "a", "namespace": "default", "finalizers": []any{"example.com/other"}}, "spec": map[string]any{"size": int64(3)},
	}})
	c.Wait(t, things, "default", "a", func(o *unstructured.Unstructured) bool {
		size, _, _ := unstructured.NestedInt64(o.Object, "status", "size")
		return size == 3 && slices.Equal(o.GetFinalizers(), []string{"example.com/other", Finalizer})
	})
	c.Delete(t, things, "default", "a")
	c.Wait(t, things, "default", "a", func(o *unstructured.Unstructured) bool {
		return slices.Equal(o.GetFinalizers(), []string{"example.com/other"})
	})
}
