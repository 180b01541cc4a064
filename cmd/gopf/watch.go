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
// network mounts. A poll costs a few microseconds per file. With many files, for example of a
// local copy of the framework, the interval grows. The files of the operator's own module and
// those of other modules have separate intervals.
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
	folders []string // of Go packages in the operator's own module
	far     []string // of Go packages in other modules; these are seldom edited
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
	modules := map[string]string{}     // the go.mod of each folder
	own := map[string]bool{}           // the modules of the packages that the user named
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
			w.far = slices.DeleteFunc(slices.Clone(w.folders), func(folder string) bool { return own[modules[folder]] })
			w.folders = slices.DeleteFunc(w.folders, func(folder string) bool { return !own[modules[folder]] })
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
		if p.Module != nil {
			modules[p.Dir] = p.Module.GoMod
		}
		if file := modules[p.Dir]; file != "" && !slices.Contains(w.files, file) {
			w.files = append(w.files, file)
		}
		if slices.Contains(b.packages, p.Dir) {
			own[modules[p.Dir]] = true
		}
	}
}

// states are the states of files by their paths. Files that cannot be read are missing.
type states map[string]fileState

func (s states) add(path string) {
	if info, err := os.Stat(path); err == nil && !info.IsDir() {
		s[path] = fileState{info.ModTime(), info.Size()}
	}
}

// addSources adds the Go files in the folders.
func (s states) addSources(folders []string) {
	for _, folder := range folders {
		entries, err := os.ReadDir(folder)
		if err != nil {
			continue
		}
		for _, e := range entries {
			if isSource(e.Name()) {
				s.add(filepath.Join(folder, e.Name()))
			}
		}
	}
}

// look returns the states of all files.
func (w watched) look() states {
	all := w.lookNear()
	all.addSources(w.far)
	return all
}

// lookNear returns the states of all files but those of other modules.
func (w watched) lookNear() states {
	near := states{}
	near.addSources(w.folders)
	for _, path := range append(slices.Clone(w.files), w.given...) {
		near.add(path)
		inside, _ := filepath.Glob(filepath.Join(path, "*")) // the pattern is valid, or matches nothing
		for _, file := range inside {
			if !isTemporary(filepath.Base(file)) {
				near.add(file)
			}
		}
	}
	return near
}

// poller looks at files again and again.
type poller struct {
	set  watched
	far  states    // of the files of other modules, at the last look at them
	next time.Time // of the next look at them
}

// look returns the states of all files, and the time until the next look.
func (p *poller) look() (all states, pause time.Duration) {
	if now := time.Now(); !now.Before(p.next) {
		p.far = states{}
		p.far.addSources(p.set.far)
		p.next = time.Now().Add(pollAfter(time.Since(now)))
	}
	began := time.Now()
	all = p.set.lookNear()
	pause = pollAfter(time.Since(began))
	maps.Copy(all, p.far)
	return all, pause
}

// isSource reports whether a change of the file may change the operator or its tests.
func isSource(name string) bool { return strings.HasSuffix(name, ".go") && !isTemporary(name) }

// isTemporary reports whether an editor has created the file for itself.
func isTemporary(name string) bool {
	return strings.HasPrefix(name, ".") || strings.HasPrefix(name, "#") || strings.HasPrefix(name, "_") || strings.HasSuffix(name, "~")
}

// changed returns the paths that differ.
func changed(before, after states) []string {
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
func watch(ctx context.Context, set watched, known states, sets <-chan watched, out chan<- []string) {
	tick := time.NewTimer(pollInterval)
	defer tick.Stop()
	last, files := known, poller{set: set}
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
			files, known, last = poller{set: next}, fresh, fresh
		case <-tick.C:
			now, pause := files.look()
			tick.Reset(pause)
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
