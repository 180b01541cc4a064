package controlplane

import (
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

func TestParallelCallersShareOneBuild(t *testing.T) {
	dir := t.TempDir()
	const others = 4
	var builds atomic.Int32
	building, waiting := make(chan struct{}), make(saying, others)
	compile := func(_ context.Context, path string) error {
		builds.Add(1)
		close(building)
		for range others {
			if line := <-waiting; !strings.Contains(line, "Another process is building") {
				t.Errorf("a waiting caller printed %q", line)
			}
		}
		return os.WriteFile(path, []byte("x"), 0o700)
	}
	var wg sync.WaitGroup
	get := func() {
		path, err := cached(t.Context(), dir, waiting, compile)
		if err != nil || filepath.Dir(path) != dir {
			t.Errorf("got %q, %v", path, err)
		}
	}
	wg.Go(get)
	<-building
	for range others {
		wg.Go(get)
	}
	wg.Wait()
	if n := builds.Load(); n != 1 {
		t.Errorf("built %d times, want once", n)
	}
}

// saying passes all writes to a function.
type saying chan string

func (s saying) Write(p []byte) (int, error) {
	s <- string(p)
	return len(p), nil
}

func TestAFailedBuildLeavesNoFilesAndIsRetried(t *testing.T) {
	dir, broken := t.TempDir(), errors.New("broken")
	_, err := cached(t.Context(), dir, io.Discard, func(_ context.Context, path string) error {
		return errors.Join(os.WriteFile(path, []byte("half"), 0o700), broken)
	})
	if !errors.Is(err, broken) {
		t.Fatalf("got %v, want the builder's error", err)
	}
	path, err := cached(t.Context(), dir, io.Discard, func(_ context.Context, path string) error {
		return os.WriteFile(path, []byte("whole"), 0o700)
	})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(path); err != nil || string(text) != "whole" {
		t.Errorf("got %q, %v", text, err)
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*.unfinished")); left != nil {
		t.Errorf("leftover files: %v", left)
	}
}

func TestWaitingForABuildEndsWithTheContext(t *testing.T) {
	dir := t.TempDir()
	unlock, err := tryLock(filepath.Join(dir, "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	if _, err := cached(ctx, dir, io.Discard, nil); !errors.Is(err, enough) {
		t.Errorf("got %v, want the cause of the cancellation", err)
	}
}

func TestUnusedExecutablesArePruned(t *testing.T) {
	cache, now := t.TempDir(), time.Now()
	for name, age := range map[string]time.Duration{"old": 2 * unusedLimit, "new": time.Hour, "locked": 2 * unusedLimit} {
		path := filepath.Join(cache, name, "devcluster"+executableSuffix)
		if err := errors.Join(os.Mkdir(filepath.Dir(path), 0o700), os.WriteFile(path, nil, 0o700),
			os.Chtimes(path, time.Time{}, now.Add(-age))); err != nil {
			t.Fatal(err)
		}
	}
	unlock, err := tryLock(filepath.Join(cache, "locked", "lock"))
	if err != nil {
		t.Fatal(err)
	}
	defer unlock()
	prune(cache, now.Add(-unusedLimit))
	var left []string
	for _, name := range []string{"old", "new", "locked"} {
		if _, err := os.Stat(filepath.Join(cache, name)); err == nil {
			left = append(left, name)
		}
	}
	if got := strings.Join(left, " "); got != "new locked" {
		t.Errorf("left are %q, want \"new locked\"", got)
	}
}

func TestExecutableFromTheEnvironment(t *testing.T) {
	path := filepath.Join(t.TempDir(), "built")
	t.Setenv(binaryVariable, path)
	if _, err := Build(t.Context(), nil); err == nil || !strings.Contains(err.Error(), binaryVariable) {
		t.Errorf("a missing file: got %v, want an error that names the variable", err)
	}
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Build(t.Context(), nil); err == nil || !strings.Contains(err.Error(), "is not an executable") {
		t.Errorf("a plain file: got %v, want that it is not an executable", err)
	}
	if err := os.Chmod(path, 0o700); err != nil {
		t.Fatal(err)
	}
	if got, err := Build(t.Context(), nil); err != nil || got != path {
		t.Errorf("got %q, %v, want %q", got, err, path)
	}
}

func TestCacheFolderWithoutHome(t *testing.T) {
	for _, name := range []string{"HOME", "XDG_CACHE_HOME", "LocalAppData", "home"} {
		t.Setenv(name, "")
	}
	t.Setenv("TMPDIR", t.TempDir())
	dir, err := cacheFolder()
	if err != nil || !strings.HasPrefix(dir, os.TempDir()) {
		t.Fatalf("got %q, %v, want a folder among the temporary files", dir, err)
	}
	if err := os.Chmod(filepath.Dir(dir), 0o777); err != nil {
		t.Fatal(err)
	}
	if dir, err := cacheFolder(); err == nil {
		t.Errorf("got %q although everybody can write to it", dir)
	}
}

func TestBuildOutputIsParsed(t *testing.T) {
	var out buildOutput
	out.problems.limit = 100
	for _, part := range []string{"go: downloading k8s.io/api v0.37.1\n", "k8s.io/a", "pi/core/v1\nk8s.io/api/apps/v1\n", "# k8s.io/x\nx.go:1: bro", "ken"} {
		if _, err := out.Write([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if got, want := out.count(), "2 packages compiled"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
	if got, want := out.problem(), "# k8s.io/x\nx.go:1: broken"; got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
