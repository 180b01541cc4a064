package controlplane

import (
	"archive/zip"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const sourceMod = "module gopf.dev/gopf/cmd/devcluster\n\nrequire (\n\tk8s.io/kubernetes v1.37.1\n)\n"

func TestSourcesOfTheCheckoutAreFound(t *testing.T) {
	src, err := findSource(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if filepath.Base(src.dir) != "devcluster" || !strings.HasPrefix(src.version, "v1.") {
		t.Errorf("got %+v", src)
	}
}

func TestTheCacheKeyDependsOnAllInputs(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), sourceMod)
	write(t, filepath.Join(dir, "main.go"), "package main")
	host := toolchain{Version: "go1.26.0", OS: "linux", Arch: "amd64"}
	key := func(tools toolchain) string {
		src, err := readSource(dir)
		if err != nil {
			t.Fatal(err)
		}
		key, err := src.key(tools)
		if err != nil {
			t.Fatal(err)
		}
		return key
	}
	first := key(host)
	if !strings.HasPrefix(first, "v1.37.1-") {
		t.Errorf("got %q, want that it begins with the version", first)
	}
	write(t, filepath.Join(dir, "main_test.go"), "package main")
	if got := key(host); got != first {
		t.Errorf("a test file changed the key from %q to %q", first, got)
	}
	seen := map[string]string{first: "the first"}
	differs := func(what, key string) {
		if other, found := seen[key]; found {
			t.Errorf("%s has the same key as %s", what, other)
		}
		seen[key] = what
	}
	differs("another Go", key(toolchain{Version: "go1.26.1", OS: "linux", Arch: "amd64"}))
	differs("another platform", key(toolchain{Version: "go1.26.0", OS: "linux", Arch: "arm64"}))
	write(t, filepath.Join(dir, "main.go"), "package main // changed")
	differs("another program", key(host))
	write(t, filepath.Join(dir, "go.sum"), "changed")
	differs("other dependencies", key(host))
	write(t, filepath.Join(dir, "go.mod"), strings.Replace(sourceMod, "v1.37.1", "v1.38.0", 1))
	differs("another Kubernetes", key(host))
}

func TestOtherModulesAreNotUsedAsSources(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "go.mod"), "module example.com/devcluster\n")
	for _, dir := range []string{dir, filepath.Join(dir, "none")} {
		if _, err := readSource(dir); !errors.Is(err, errNoSource) {
			t.Errorf("%s: got %v", dir, err)
		}
	}
}

// A module that requires gopf has no sources of the control plane next to it.
func TestSourcesAreDownloadedInTheVersionOfTheRootModule(t *testing.T) {
	dir := t.TempDir()
	proxy, user := filepath.Join(dir, "proxy"), filepath.Join(dir, "user")
	const version = "v0.3.1"
	for _, module := range []string{rootModule, devclusterModule} {
		at := filepath.Join(proxy, filepath.FromSlash(module), "@v")
		mod := sourceMod
		if module == rootModule {
			mod = "module gopf.dev/gopf\n"
		}
		write(t, filepath.Join(at, version+".info"), `{"Version":"`+version+`"}`)
		write(t, filepath.Join(at, version+".mod"), mod)
		zipped(t, filepath.Join(at, version+".zip"), module+"@"+version+"/go.mod", mod)
	}
	write(t, filepath.Join(user, "go.mod"), "module example.com/user\n\ngo 1.26\n\nrequire gopf.dev/gopf "+version+"\n")
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GOSUMDB", "off")
	t.Setenv("GOMODCACHE", filepath.Join(dir, "modules"))
	t.Cleanup(func() { makeWritable(t, filepath.Join(dir, "modules")) })

	src, err := download(t.Context(), user)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(src.dir, "devcluster@"+version) || src.version != "v1.37.1" {
		t.Errorf("got %+v", src)
	}
	if err := os.RemoveAll(filepath.Join(proxy, filepath.FromSlash(devclusterModule))); err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOMODCACHE", filepath.Join(dir, "modules", "other"))
	if _, err := download(t.Context(), user); err == nil || !strings.Contains(err.Error(), devclusterModule+"@"+version) ||
		!strings.Contains(err.Error(), binaryVariable) {
		t.Errorf("a version without sources: got %v, want its name and what to do", err)
	}
	if _, err := download(t.Context(), dir); err == nil || !strings.Contains(err.Error(), binaryVariable) {
		t.Errorf("outside of any module: got %v, want what to do", err)
	}
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o755), os.WriteFile(path, []byte(text), 0o600)); err != nil {
		t.Fatal(err)
	}
}

func zipped(t *testing.T, path, name, text string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	archive := zip.NewWriter(file)
	entry, err := archive.Create(name)
	if err != nil {
		t.Fatal(err)
	}
	_, err = entry.Write([]byte(text))
	if err := errors.Join(err, archive.Close(), file.Close()); err != nil {
		t.Fatal(err)
	}
}

// makeWritable makes a module cache, which is read-only, deletable for the test's cleanup.
func makeWritable(t *testing.T, dir string) {
	err := filepath.WalkDir(dir, func(path string, entry os.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			err = os.Chmod(path, 0o700)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
