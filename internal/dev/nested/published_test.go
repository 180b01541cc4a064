package nested

import (
	"archive/zip"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// publish writes a module into a folder with the layout of module proxies.
func publish(t *testing.T, proxy, module, version string, files map[string]string) {
	t.Helper()
	dir := filepath.Join(proxy, filepath.FromSlash(module), "@v")
	archive, err := os.Create(filepath.Join(mkdir(t, dir), version+".zip"))
	if err != nil {
		t.Fatal(err)
	}
	w := zip.NewWriter(archive)
	for name, text := range files {
		entry, err := w.Create(module + "@" + version + "/" + name)
		if err == nil {
			_, err = entry.Write([]byte(text))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(w.Close(), archive.Close(),
		os.WriteFile(filepath.Join(dir, version+".mod"), []byte(files["go.mod"]), 0o600),
		os.WriteFile(filepath.Join(dir, version+".info"), []byte(`{"Version":"`+version+`"}`), 0o600),
		os.WriteFile(filepath.Join(dir, "list"), []byte(version+"\n"), 0o600),
	); err != nil {
		t.Fatal(err)
	}
}

func mkdir(t *testing.T, dir string) string {
	t.Helper()
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	return dir
}

// proxied publishes the root module, and two modules with programs: one replaces the root
// module by a folder, as libraries of the checkout do. Their versions are those of the root
// module, or that of a checkout.
func proxied(t *testing.T, version, required string) {
	t.Helper()
	proxy, cache := t.TempDir(), t.TempDir()
	publish(t, proxy, "gopf.dev/gopf", version, map[string]string{
		"go.mod": "module gopf.dev/gopf\n\ngo 1.26.0\n", "gopf.go": "package gopf\n\nconst Word = \"published\"\n",
	})
	publish(t, proxy, "gopf.dev/gopf/gopftest", version, map[string]string{
		"go.mod":                  "module gopf.dev/gopf/gopftest\n\ngo 1.26.0\n\nrequire gopf.dev/gopf " + required + "\n\nreplace gopf.dev/gopf => ../\n",
		"cmd/gopf-memory/main.go": "package main\n\nimport \"gopf.dev/gopf\"\n\nfunc main() { print(gopf.Word) }\n",
	})
	publish(t, proxy, "gopf.dev/gopf/cmd/gopf-manifests", version, map[string]string{
		"go.mod": "module gopf.dev/gopf/cmd/gopf-manifests\n\ngo 1.26.0\n", "main.go": "package main\n\nfunc main() { print(\"alone\") }\n",
	})
	builds, err := exec.CommandContext(t.Context(), "go", "env", "GOCACHE").Output()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("GOCACHE", strings.TrimSpace(string(builds))) // the standard library is in it
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Setenv("GOPROXY", "file://"+filepath.ToSlash(proxy))
	t.Setenv("GONOSUMDB", "gopf.dev")
	t.Setenv("GOMODCACHE", cache)
	t.Cleanup(func() { // the files are read-only
		clean := exec.Command("go", "clean", "-modcache")
		clean.Env = append(os.Environ(), "GOMODCACHE="+cache)
		_ = clean.Run() // the removal of the folder reports the failure
	})
}

func TestProgramsOfAPublishedVersionAreBuiltWithoutACheckout(t *testing.T) {
	for version, required := range map[string]string{"v0.9.0": "v0.9.0", "v0.0.0-20260101000000-0123456789ab": "v0.0.0"} {
		t.Run(version, func(t *testing.T) {
			proxied(t, version, required)
			for name, want := range map[string]string{"gopf-memory": "published", "gopf-manifests": "alone"} {
				for range 2 { // the second time, the module exists
					dir, pkg, err := published(t.Context(), name, version)
					if err != nil {
						t.Fatal(err)
					}
					path := filepath.Join(t.TempDir(), "folder", name)
					if err := compile(t.Context(), dir, pkg, path); err != nil {
						t.Fatal(err)
					}
					if out, err := exec.CommandContext(t.Context(), path).CombinedOutput(); err != nil || string(out) != want {
						t.Errorf("%s: got %q, %v", name, out, err)
					}
				}
			}
		})
	}
}

func TestAVersionThatIsNotPublishedIsAnError(t *testing.T) {
	proxied(t, "v0.9.0", "v0.9.0")
	if _, _, err := published(t.Context(), "gopf-memory", "v0.9.1"); err == nil || !strings.Contains(err.Error(), "download gopf.dev/gopf/gopftest@v0.9.1: ") {
		t.Errorf("got %v", err)
	}
}
