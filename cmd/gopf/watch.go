package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// The time between two polls of the watched files. Polling needs no library and works on
// network mounts. A poll costs a few microseconds per file. With many files, for example of
// the framework itself, the interval grows.
const (
	pollInterval    = 150 * time.Millisecond
	maxPollInterval = 400 * time.Millisecond
	silence         = 75 * time.Millisecond // after a change: a poll without a further one starts the build
	pollShare       = 1000                  // the interval is this many times as long as a poll
)

// pollAfter returns the interval after a poll that took the given time.
func pollAfter(look time.Duration) time.Duration {
	return min(max(pollInterval, pollShare*look), maxPollInterval)
}

// watched are the files whose changes reload the operator.
type watched struct {
	folders []string // of Go packages
	files   []string // others: embedded files, go.mod
	given   []string // manifests, files or folders
	cli     bool     // the operator has the commands of package cli
}

// fileState identifies one state of a file.
type fileState struct {
	modified time.Time
	size     int64
}

// sources returns the packages of the operator that the user can edit: those that are not in
// the module cache or the standard library.
func (b *build) sources(ctx context.Context) (watched, error) {
	cache, err := goOutput(ctx, b.dir, "env", "GOMODCACHE")
	if err != nil {
		return watched{}, err
	}
	out, err := goOutput(ctx, b.dir, append([]string{"list", "-e", "-deps", "-json=Dir,ImportPath,Standard,EmbedFiles,Module"}, b.packages...)...)
	if err != nil {
		return watched{}, fmt.Errorf("list the packages of the operator: %w", err)
	}
	w := watched{cli: b.source != nil} // a generated main function has them
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var p struct {
			Dir        string
			ImportPath string
			Standard   bool
			EmbedFiles []string
			Module     *struct{ GoMod string }
		}
		if err := decoder.Decode(&p); errors.Is(err, io.EOF) {
			return w, nil
		} else if err != nil {
			return watched{}, fmt.Errorf("read the list of packages: %w", err)
		}
		w.cli = w.cli || p.ImportPath == "gopf.dev/gopf/cli"
		if p.Standard || p.Dir == "" || strings.HasPrefix(p.Dir, strings.TrimSpace(string(cache))+string(filepath.Separator)) {
			continue
		}
		w.folders = append(w.folders, p.Dir)
		for _, name := range p.EmbedFiles {
			w.files = append(w.files, filepath.Join(p.Dir, name))
		}
		if p.Module != nil && p.Module.GoMod != "" && !slices.Contains(w.files, p.Module.GoMod) {
			w.files = append(w.files, p.Module.GoMod)
		}
	}
}

// look returns the states of all files. Files that cannot be read are missing.
func (w watched) look() map[string]fileState {
	states := map[string]fileState{}
	add := func(path string) {
		if info, err := os.Stat(path); err == nil && !info.IsDir() {
			states[path] = fileState{info.ModTime(), info.Size()}
		}
	}
	for _, folder := range w.folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if isSource(e.Name()) {
				add(filepath.Join(folder, e.Name()))
			}
		}
	}
	for _, path := range append(slices.Clone(w.files), w.given...) {
		add(path)
		inside, _ := filepath.Glob(filepath.Join(path, "*")) // the pattern is valid, or matches nothing
		for _, file := range inside {
			if !isTemporary(filepath.Base(file)) {
				add(file)
			}
		}
	}
	return states
}

// isSource reports whether a change of the file may change the operator or its tests.
func isSource(name string) bool { return strings.HasSuffix(name, ".go") && !isTemporary(name) }

// isTemporary reports whether an editor has created the file for itself.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, "~")
}

// changed returns the paths that differ.
func changed(before, after map[string]fileState) []string {
	paths := map[string]bool{}
	for path, state := range after {
		if before[path] != state {
			paths[path] = true
		}
	}
	for path := range before {
		if _, ok := after[path]; !ok {
			paths[path] = true
		}
	}
	return slices.Sorted(maps.Keys(paths))
}

// watch sends the paths of changed files until ctx is done. It waits until a poll finds no
// further change, because editors save several files at once. When it gets a new set of files,
// it reports no difference between the sets.
func watch(ctx context.Context, set watched, known map[string]fileState, sets <-chan watched, out chan<- []string) {
	tick := time.NewTimer(pollInterval)
	defer tick.Stop()
	last := known
	for {
		select {
		case <-ctx.Done():
			return
		case next := <-sets:
			// Changes since the last poll must not be missed.
			fresh := next.look()
			for path, state := range fresh {
				if old, ok := known[path]; ok && old != state {
					fresh[path] = old
				}
			}
			set, known, last = next, fresh, fresh
		case <-tick.C:
			began := time.Now()
			now := set.look()
			tick.Reset(pollAfter(time.Since(began)))
			if len(changed(last, now)) > 0 {
				last = now
				tick.Reset(silence)
				continue
			}
			if paths := changed(known, now); len(paths) > 0 {
				known = now
				select {
				case out <- paths:
				case <-ctx.Done():
					return
				}
			}
		}
	}
}
