package manifests

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestReadFilesAndFolders(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, "a.yaml", "# a comment\n---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n---\n---\napiVersion: v1\nkind: Secret\nmetadata: {name: b, namespace: ns}\n")
	write(t, dir, "b.json", `{"apiVersion":"v1","kind":"List","items":[
		{"apiVersion":"v1","kind":"Pod","metadata":{"generateName":"c-"}},
		{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"name":"d"},"spec":{"replicas":3}}]}`)
	write(t, dir, "notes.txt", "no manifest")
	write(t, dir, "sub/e.yaml", "no manifest")

	objects, err := Read(filepath.Join(dir, "b.json"), dir)
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, o := range objects {
		got = append(got, o.String()+" from "+filepath.Base(o.Source))
	}
	want := []string{
		"Pod c-… from b.json", "Deployment d from b.json",
		"ConfigMap a from a.yaml, document 2", "Secret ns/b from a.yaml, document 3",
		"Pod c-… from b.json", "Deployment d from b.json",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	if replicas := objects[1].Object["spec"].(map[string]any)["replicas"]; replicas != int64(3) {
		t.Errorf("got replicas %T %v, want an integer", replicas, replicas)
	}
}

func TestErrorsNameTheManifest(t *testing.T) {
	const good = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\n"
	cases := map[string]struct{ text, want string }{
		"no YAML":            {good + "---\nx: {\n", "bad.yaml, document 2: "},
		"no object":          {"just text", "bad.yaml: not a Kubernetes object"},
		"no kind":            {good + "---\napiVersion: v1\nmetadata: {name: a}\n", "bad.yaml, document 2: not a Kubernetes object"},
		"no name":            {"apiVersion: v1\nkind: ConfigMap\n", "bad.yaml: metadata.name of the ConfigMap is missing"},
		"no name in a list":  {"apiVersion: v1\nkind: List\nitems: [{apiVersion: v1, kind: Pod}]\n", "bad.yaml: item 1: metadata.name of the Pod is missing"},
		"a field twice":      {good + "metadata: {name: b}\n", `key "metadata" already set`},
		"nothing":            {"# only a comment\n", "bad.yaml: the file contains no objects"},
		"an empty file":      {"", "bad.yaml: the file contains no objects"},
		"a scalar as a list": {"apiVersion: v1\nkind: List\nitems: [1]\n", "bad.yaml: "},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			write(t, dir, "bad.yaml", c.text)
			objects, err := Read(dir)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("got %v, %v, want %q", objects, err, c.want)
			}
		})
	}
}

func TestMissingFilesAndEmptyFolders(t *testing.T) {
	dir := t.TempDir()
	if _, err := Read(filepath.Join(dir, "none.yaml")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("got %v, want that it does not exist", err)
	}
	if _, err := Read(dir); err == nil || !strings.Contains(err.Error(), "contains no *.yaml") {
		t.Errorf("got %v, want that the folder is empty", err)
	}
}

func write(t *testing.T, dir, name, text string) {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}
