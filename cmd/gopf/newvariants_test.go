package main

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// The manifests of each variant are those that "gopf manifests" writes.
func TestVariantsPassTheirTestsAndHaveTheirManifests(t *testing.T) {
	t.Parallel()
	for name, with := range map[string]string{"small": "minimal", "large": "children,admission"} {
		folder := newProject(t, name, "--with", with)
		d, err := loadDeployment(t.Context(), folder, true, os.Stderr)
		if err != nil {
			t.Fatal(err)
		}
		var out bytes.Buffer
		files, err := d.files()
		if err != nil {
			t.Fatal(err)
		}
		if err := (&manifestsRun{}).verify(t.Context(), d, d.folder, files, &out, &out); err != nil {
			t.Errorf("%s: the manifests are not those of the declarations: %v\n%s", with, err, out.String())
		}
		goIn(t, folder, "vet", "./...")
		goIn(t, folder, "test", "./...")
		formatted, err := exec.CommandContext(t.Context(), "gofmt", "-l", folder).CombinedOutput()
		if err != nil || len(formatted) > 0 {
			t.Errorf("%s: not formatted: %s %v", with, formatted, err)
		}
	}
}

func gopfIn(t *testing.T, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	var out, errs bytes.Buffer
	code = run(&interrupt{first: make(chan struct{})}, args, &out, &errs)
	return out.String(), errs.String(), code
}

func TestAddWritesIntoANewProject(t *testing.T) {
	folder := newProject(t, "demo")
	before, err := os.ReadFile(filepath.Join(folder, "operator.go"))
	if err != nil {
		t.Fatal(err)
	}
	if out, errs, code := gopfIn(t, "add", "timer", "nightly-check", "--every", "24h", "--dir", folder, "--print"); code != 0 || !strings.Contains(out, "const nightlyCheckInterval = 24 * time.Hour") {
		t.Errorf("--print: %d %s %s", code, out, errs)
	}
	now, err := os.ReadFile(filepath.Join(folder, "operator.go"))
	if err != nil || !bytes.Equal(before, now) {
		t.Errorf("--print changed operator.go: %v", err)
	}
	for _, args := range [][]string{
		{"add", "timer", "nightly-check", "--every", "24h"}, {"add", "handler", "field", "rename", "--field", "spec.who"}, {"add", "kind", "Backup"},
		{"add", "webhook", "validate", "size", "--for", "Demo"}, {"add", "reconcile", "family", "--for", "Backup"}, {"add", "daemon", "watch", "--for", "Backup"},
	} {
		if out, errs, code := gopfIn(t, append(args, "--dir", folder)...); code != 0 || !strings.Contains(out, "~ operator.go: ") {
			t.Errorf("%v: %d %s %s", args, code, out, errs)
		}
	}
	if _, errs, code := gopfIn(t, "add", "timer", "nightly-check", "--for", "Demo", "--dir", folder); code != 1 || !strings.Contains(errs, `a handler with the id "nightly-check" exists already: `) {
		t.Errorf("a second time: %d %s", code, errs)
	}
	goIn(t, folder, "vet", "./...")
}

func TestMigrateWritesAProject(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "columns")
	out, errs, code := gopfIn(t, "migrate", "kopf", "--out", folder, "../../internal/dev/migrate/testdata/column_store.py")
	if code != 0 || !strings.Contains(out, "decorators               6 of 7 (85 %)") {
		t.Fatalf("%d %s %s", code, out, errs)
	}
	goIn(t, folder, "vet", "./...")
	for _, name := range []string{"operator.go", "main.go", "takeover_test.go", "MIGRATION.md", "go.mod"} {
		if _, err := os.Stat(filepath.Join(folder, name)); err != nil {
			t.Error(err)
		}
	}
	if _, errs, code := gopfIn(t, "migrate", "kopf", "--out", folder, "../../internal/dev/migrate/testdata/column_store.py"); code != 2 || !strings.Contains(errs, "already exists and is not empty") {
		t.Errorf("a second time: %d %s", code, errs)
	}
}

func TestTheYAMLVariantHasNoGoCode(t *testing.T) {
	folder := newProject(t, "words", "--with", "yaml")
	var files []string
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err == nil && d.Name() == ".git" {
			return filepath.SkipDir
		}
		if err == nil && !d.IsDir() {
			files = append(files, strings.TrimPrefix(path, folder+"/"))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{".github/workflows/test.yml", ".gitignore", "AGENTS.md", "Makefile", "README.md", "crd.yaml", "farewell.sh", "operator.yaml", "operator_test.yaml", "sample.yaml"}
	if !slices.Equal(files, want) {
		t.Errorf("got %q, want %q", files, want)
	}
	if info, err := os.Stat(filepath.Join(folder, "farewell.sh")); err != nil || info.Mode()&0o100 == 0 {
		t.Errorf("farewell.sh cannot be executed: %v", err)
	}
}
