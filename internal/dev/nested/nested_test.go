package nested

import (
	"archive/zip"
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// program writes a module with a main function.
func program(t *testing.T, dir, text string) {
	t.Helper()
	if err := errors.Join(
		os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/x\n\ngo 1.26.0\n"), 0o600),
		os.WriteFile(filepath.Join(dir, "main.go"), []byte(text), 0o600),
	); err != nil {
		t.Fatal(err)
	}
}

func TestTheKeyDependsOnTheSourcesWithoutTests(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "package main\n\nfunc main() {}\n")
	key := func() string {
		t.Helper()
		k, err := keyOf(t.Context(), dir, "")
		if err != nil {
			t.Fatal(err)
		}
		return k
	}
	first := key()
	if err := os.WriteFile(filepath.Join(dir, "main_test.go"), []byte("package main\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if key() != first {
		t.Error("a test changes the key")
	}
	program(t, dir, "package main\n\nfunc main() { println() }\n")
	if key() == first {
		t.Error("a change of the sources does not change the key")
	}
}

func TestTheKeyDependsOnAllFoldersOfTheModule(t *testing.T) {
	dir := t.TempDir()
	program(t, dir, "package main\n\nfunc main() {}\n")
	first, err := keyOf(t.Context(), dir, "")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "sub.go"), []byte("package sub\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if second, err := keyOf(t.Context(), dir, ""); err != nil || second == first {
		t.Errorf("got %s again, %v", second, err)
	}
}

func TestTheKeyDependsOnTheRootModuleOfTheCheckout(t *testing.T) {
	folders, err := foldersOf(filepath.Join("..", "..", "..", "serve"))
	if err != nil || !slices.Contains(folders, filepath.Join("..", "..", "..", "client")) {
		t.Errorf("got %v, %v", folders, err)
	}
}

func TestAFailedBuildLeavesNoExecutable(t *testing.T) {
	dir, cache := t.TempDir(), t.TempDir()
	path := filepath.Join(cache, "key", "x")
	program(t, dir, "package main\n\nfunc main() { none() }\n")
	if err := compile(t.Context(), dir, ".", path); err == nil || !strings.Contains(err.Error(), "undefined: none") {
		t.Errorf("got %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(cache, "key", "*")); left != nil {
		t.Errorf("left are %v", left)
	}
	program(t, dir, "package main\n\nfunc main() {}\n")
	if err := compile(t.Context(), dir, ".", path); err != nil {
		t.Fatal(err)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm()&0o100 == 0 {
		t.Errorf("got %v, %v", info, err)
	}
}

func TestUnusedExecutablesAreRemoved(t *testing.T) {
	cache, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{"old": 2 * unusedLimit, "new": time.Hour} {
		path := filepath.Join(cache, name, "x")
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o700), os.Chtimes(path, time.Time{}, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	prune(cache, now.Add(-unusedLimit))
	_, old := os.Stat(filepath.Join(cache, "old"))
	_, recent := os.Stat(filepath.Join(cache, "new"))
	if !errors.Is(old, os.ErrNotExist) || recent != nil {
		t.Errorf("the old one: %v, the new one: %v", old, recent)
	}
}

func TestTheSourcesAreThoseOfTheCheckout(t *testing.T) {
	dir, version, err := source("gopf-manifests")
	if err != nil || version != "" {
		t.Fatalf("the version is %q, %v", version, err)
	}
	if _, err := os.Stat(filepath.Join(dir, "generate.go")); err != nil {
		t.Error(err)
	}
}

// publish writes a version of a module into a folder with the layout of a module proxy.
func publish(t *testing.T, proxy, module string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(proxy, module, "@v")
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	archive, err := os.Create(filepath.Join(dir, "v0.1.0.zip"))
	if err != nil {
		t.Fatal(err)
	}
	z := zip.NewWriter(archive)
	for name, text := range files {
		w, err := z.Create(module + "@v0.1.0/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(z.Close(), archive.Close(),
		os.WriteFile(filepath.Join(dir, "v0.1.0.mod"), []byte(files["go.mod"]), 0o600),
		os.WriteFile(filepath.Join(dir, "v0.1.0.info"), []byte(`{"Version": "v0.1.0"}`), 0o600),
	); err != nil {
		t.Fatal(err)
	}
}

// The module of the program refers to the folder above it, which exists only in a checkout.
func TestAPublishedVersionIsBuiltWithoutACheckout(t *testing.T) {
	proxy := t.TempDir()
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", t.TempDir())
	t.Cleanup(func() { // its files are read-only
		if _, err := goTool(context.Background(), ".", "clean", "-modcache"); err != nil {
			t.Error(err)
		}
	})
	publish(t, proxy, "gopf.dev/gopf", map[string]string{"go.mod": "module gopf.dev/gopf\n\ngo 1.26.0\n", "gopf.go": "package gopf\n\nconst Word = \"hello\"\n"})
	publish(t, proxy, "gopf.dev/gopf/serve", map[string]string{
		"go.mod":                 "module gopf.dev/gopf/serve\n\ngo 1.26.0\n\nrequire gopf.dev/gopf v0.1.0\n\nreplace gopf.dev/gopf => ../\n",
		"cmd/gopf-serve/main.go": "package main\n\nimport \"gopf.dev/gopf\"\n\nfunc main() { print(gopf.Word) }\n",
	})
	path := filepath.Join(t.TempDir(), "gopf-serve")
	if err := compileVersion(t.Context(), "gopf-serve", "v0.1.0", path); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil || string(out) != "hello" {
		t.Errorf("got %q, %v", out, err)
	}
}

func TestTheKeyDependsOnThePublishedVersion(t *testing.T) {
	first, err := keyOf(t.Context(), "", "v0.1.0")
	second, failed := keyOf(t.Context(), "", "v0.2.0")
	if err != nil || failed != nil || first == second {
		t.Errorf("got %s and %s, %v, %v", first, second, err, failed)
	}
}
