package nested

import (
	"errors"
	"os"
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
		k, err := keyOf(t.Context(), dir)
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
	first, err := keyOf(t.Context(), dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Mkdir(filepath.Join(dir, "sub"), 0o700), os.WriteFile(filepath.Join(dir, "sub", "sub.go"), []byte("package sub\n"), 0o600)); err != nil {
		t.Fatal(err)
	}
	if second, err := keyOf(t.Context(), dir); err != nil || second == first {
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
	dir, pkg, err := Source(t.Context(), "gopf-manifests")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "generate.go")); err != nil || pkg != "./." {
		t.Errorf("got the package %s, %v", pkg, err)
	}
}
