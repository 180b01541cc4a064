package controlplane

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"

	"gopf.dev/gopf/internal/backoff"
)

// binaryVariable is the environment variable with the path of an executable control plane
// that was built elsewhere.
const binaryVariable = "GOPF_DEVCLUSTER"

// Build returns the path of the control plane's executable, and builds it if needed.
//
// It is built once, from source, into the user's cache folder. This takes minutes; progress
// (which may be nil) receives lines about it. The cache key depends on all inputs of the
// build. Any number of processes share one build: the first one builds, the others wait.
// Executables that were not used for a month are removed.
//
// If the environment variable GOPF_DEVCLUSTER is set, it is the path of an executable to
// use instead.
func Build(ctx context.Context, progress io.Writer) (path string, err error) {
	return build(ctx, progress)
}

// Prepare builds the control plane like [Build], for later runs. It leaves the other cores
// to the programs that run meanwhile, so it takes longer. If ctx is canceled, the next build
// continues with the packages that are compiled by then.
func Prepare(ctx context.Context, progress io.Writer) (path string, err error) {
	return build(ctx, progress, "GOFLAGS=-mod=readonly -p=1", "GOMAXPROCS=1")
}

// build is [Build] with more variables in the environment of the compilation.
func build(ctx context.Context, progress io.Writer, env ...string) (path string, err error) {
	if path := os.Getenv(binaryVariable); path != "" {
		return given(path)
	}
	if progress == nil {
		progress = io.Discard
	}
	src, err := findSource(ctx)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	tools, err := findToolchain(ctx, src.dir)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	key, err := src.key(tools)
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	cache, err := cacheFolder()
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	path, err = cached(ctx, filepath.Join(cache, key), progress, func(ctx context.Context, path string) error {
		fmt.Fprintf(progress, "Building the Kubernetes %s control plane. This happens once, takes about 8 minutes on 2 cores "+
			"and is cached in %s.\n", src.version, cache)
		return compile(ctx, src, tools, path, progress, env...)
	})
	if err != nil {
		return "", fmt.Errorf("build the control plane: %w", err)
	}
	prune(cache, time.Now().Add(-unusedLimit))
	return path, nil
}

// given checks the executable in the environment variable.
func given(path string) (string, error) {
	path, err := filepath.Abs(path)
	if err != nil {
		return "", fmt.Errorf("find the control plane: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return "", fmt.Errorf("find the control plane named by %s: %w", binaryVariable, err)
	}
	if !info.Mode().IsRegular() || runtime.GOOS != "windows" && info.Mode().Perm()&0o111 == 0 {
		return "", fmt.Errorf("find the control plane named by %s: %s is not an executable", binaryVariable, path)
	}
	return path, nil
}

// cached returns the executable in dir, and builds it if it does not exist. Of several
// callers, in this process and others, one builds it and the others wait.
func cached(ctx context.Context, dir string, progress io.Writer, build func(ctx context.Context, path string) error) (string, error) {
	path := filepath.Join(dir, "devcluster"+executableSuffix)
	if used(path) {
		return path, nil
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", fmt.Errorf("create the cache folder: %w", err)
	}
	unlock, err := lock(ctx, filepath.Join(dir, "lock"), func() {
		fmt.Fprintln(progress, "Another process is building the Kubernetes control plane; waiting for it.")
	})
	if err != nil {
		return "", err
	}
	defer unlock()
	if used(path) {
		return path, nil
	}
	unfinished := path + ".unfinished"
	defer os.Remove(unfinished)
	if err := build(ctx, unfinished); err != nil {
		return "", err
	}
	return path, os.Rename(unfinished, path)
}

// used reports whether the executable exists, and marks it as used now.
func used(path string) bool {
	if _, err := os.Stat(path); err != nil {
		return false
	}
	_ = os.Chtimes(path, time.Time{}, time.Now()) // only prune needs the time
	return true
}

// lockPause is the time between two attempts to take a lock that another process has.
const lockPause = 200 * time.Millisecond

// lock takes the lock file at path. While another process has the lock, it waits, after
// calling waiting once. The lock of a process ends with that process.
func lock(ctx context.Context, path string, waiting func()) (unlock func(), err error) {
	for first := true; ; first = false {
		unlock, err := tryLock(path)
		if err == nil {
			return unlock, nil
		}
		if !errors.Is(err, errLocked) {
			return nil, fmt.Errorf("take the lock %s: %w", path, err)
		}
		if first {
			waiting()
		}
		if err := backoff.Sleep(ctx, lockPause); err != nil {
			return nil, fmt.Errorf("wait for the other build: %w", err)
		}
	}
}
