package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/deploy"
	"gopf.dev/gopf/internal/dev/manifests"
)

// settled is the time after which a new build counts as working. If it exits earlier, the
// previous build runs again.
const settled = 5 * time.Second

// revision is one successful build of the operator.
type revision struct {
	number   int
	path     string // of the executable
	describe []byte // its declarations; nil means unknown
	debug    bool   // built for the debugger
}

// attempt is the outcome of one build in the loop.
type attempt struct {
	revision *revision // nil means that the build failed
	problem  string    // one line
	saved    []string  // the files whose change caused it
	took     time.Duration
	notes    []string           // about manifests
	breaks   []manifests.Object // definitions that break their users and wait for consent
}

// loop is the inner loop of "gopf dev": it rebuilds the operator when its files change, and
// replaces the running one. The cluster stays, and so does the progress on the objects. No
// error of the operator ends the loop.
type loop struct {
	*dev
	build      *build
	temp       string
	kubeconfig string
	died       <-chan struct{} // closed when the control plane has ended; may be nil
	out        *gate           // output of the operator

	files    watched
	number   int // of builds
	current  *child
	previous *revision
	pending  []manifests.Object // definitions that wait for the consent of the user
	tests    bool
	debug    bool

	heads    heads // of the operator's Go files
	unlisted bool  // the code may import other packages than those that are watched
	attempts chan attempt
	cancel   context.CancelFunc // of the running build; may be nil
	waiting  []string           // files of a build that was canceled
}

// run runs the operator until the user interrupts it or the control plane fails.
func (l *loop) run(ctx context.Context, first *revision, known map[string]fileState) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	l.attempts = make(chan attempt)
	l.heads = headsOf(l.files.folders)
	changes, sets := make(chan []string), make(chan watched)
	go watch(ctx, l.files, known, sets, changes)
	keys := l.keys(ctx)
	defer keys.restore()
	if err := l.start(first); err != nil {
		return err
	}
	defer func() { l.end() }()
	for {
		var ended <-chan struct{}
		if l.current != nil {
			ended = l.current.ended
		}
		select {
		case <-l.stop.first:
			fmt.Fprintln(l.stderr, "\nStopping the operator; press Ctrl-C again to stop everything immediately.")
			return l.quit()
		case <-l.died:
			return errClusterDied
		case <-ended:
			l.exited(ctx)
		case saved := <-changes:
			l.reload(ctx, saved, sets)
		case a := <-l.attempts:
			l.cancel, l.waiting = nil, nil
			l.unlisted = l.unlisted && a.revision == nil
			l.swap(ctx, a)
		case key, ok := <-keys.pressed:
			if !ok {
				keys.pressed = nil // the end of the input
				continue
			}
			if l.key(ctx, key, keys, sets) {
				return l.quit()
			}
		}
	}
}

// errClusterDied is the error of the loop if the control plane has ended.
var errClusterDied = errors.New("the control plane stopped unexpectedly")

// say prints one line with the time.
func (l *loop) say(format string, args ...any) {
	fmt.Fprintf(l.stderr, "%s %s\n", time.Now().Format(time.TimeOnly), fmt.Sprintf(format, args...))
}

// start starts the operator.
func (l *loop) start(v *revision) error {
	path, args, env := v.path, l.args, l.environment(l.kubeconfig)
	if v.debug {
		path, args = debuggerCommand(v.path, l.args)
		env = append(env, "GOPF_DEBUGGER=1")
	}
	c, err := startChild(v, path, args, env, l.out.to(os.Stdout), l.out.to(os.Stderr))
	if err != nil {
		return err
	}
	l.current = c
	return nil
}

// end stops the operator if it runs.
func (l *loop) end() {
	if l.current != nil {
		l.current.stop(l.stop.second)
		l.current = nil
	}
}

// quit stops the operator at the end of the loop.
func (l *loop) quit() error {
	c := l.current
	if c == nil {
		return nil
	}
	l.current = nil
	if graceful := c.stop(l.stop.second); graceful {
		return nil
	}
	select {
	case <-l.stop.second:
		return exitError{code: exitInterrupted}
	default:
		return exitError{exitFailure, fmt.Errorf("the operator did not stop within %v and was killed", grace)}
	}
}

// reload builds the operator in the background. A build that runs is canceled: it would be
// outdated.
func (l *loop) reload(ctx context.Context, saved []string, sets chan watched) {
	if l.cancel != nil {
		l.cancel()
		<-l.attempts
	}
	saved = append(l.waiting, saved...)
	slices.Sort(saved)
	saved = slices.Compact(saved)
	l.waiting = saved
	l.number++
	l.unlisted = l.heads.change(saved) || len(saved) == 0 || l.unlisted // no files: the user asked for it
	var build context.Context
	build, l.cancel = context.WithCancel(ctx)
	number, debug, list := l.number, l.debug, l.unlisted
	go func() {
		a := l.attempt(build, number, debug, saved)
		select {
		case l.attempts <- a:
		case <-ctx.Done():
		}
		// Listing the packages takes half a second, which the swap does not wait for.
		if a.revision == nil || !list {
			return
		}
		if files, err := l.build.sources(ctx); err == nil {
			files.given = l.files.given
			select {
			case sets <- files:
			case <-ctx.Done():
			}
		}
	}()
}

// attempt builds the operator and checks its declarations.
func (l *loop) attempt(ctx context.Context, number int, debug bool, saved []string) attempt {
	began := time.Now()
	a := attempt{saved: saved}
	if len(saved) > 0 && !slices.ContainsFunc(saved, l.isCode) {
		a.notes, a.took = l.applyChanged(ctx, saved), time.Since(began)
		return a
	}
	folder := filepath.Join(l.temp, fmt.Sprint("build-", number))
	if err := os.Mkdir(folder, 0o700); err != nil {
		a.problem = err.Error()
		return a
	}
	b := *l.build
	var err error
	if b.flags, err = b.buildFlags(ctx, debug); err != nil {
		a.problem = err.Error()
		return a
	}
	path, out, err := b.compile(ctx, folder)
	a.took = time.Since(began)
	if err != nil {
		a.problem = firstProblem(string(out), err)
		return a
	}
	v := &revision{number: number, path: path, debug: debug}
	// A panic or an error in the declarations must not replace an operator that works.
	if l.files.cli {
		if v.describe, err = describeOperator(ctx, path, deploy.Options{}); err != nil {
			a.problem = describeProblem(err, l.files.folders)
			return a
		}
	}
	a.notes = l.applyChanged(ctx, saved)
	l.define(ctx, v, &a)
	a.revision = v
	return a
}

// buildFlags returns flags that make a build short. The executable is stripped, and calls in
// the packages below the working directory are not inlined: their generic handlers compile in
// a third less time. The debugger needs symbols, and code of the user's modules that is not
// optimized. All other code stays as it is in the cache: compiling it again takes minutes.
func (b *build) buildFlags(ctx context.Context, debug bool) ([]string, error) {
	if !debug {
		return []string{"-ldflags=-s -w", "-gcflags=./...=-l"}, nil
	}
	modules, err := goOutput(ctx, b.dir, "list", "-m", "-f", "{{.Path}}")
	if err != nil {
		return nil, err
	}
	var flags []string
	for module := range strings.FieldsSeq(string(modules)) {
		flags = append(flags, "-gcflags="+module+"/...=-N -l")
	}
	return flags, nil
}

// isCode reports whether the file is part of the operator, and not a manifest.
func (l *loop) isCode(path string) bool {
	return isSource(filepath.Base(path)) || slices.Contains(l.files.files, path)
}

var compilerError = regexp.MustCompile(`^\S+\.go:\d+`)

// firstProblem returns the first error of the compiler, and the number of further ones.
func firstProblem(out string, err error) string {
	var found []string
	for line := range strings.Lines(out) {
		if line = strings.TrimSpace(line); compilerError.MatchString(line) {
			found = append(found, strings.TrimPrefix(line, "./"))
		}
	}
	switch len(found) {
	case 0:
		return firstLine(out, err)
	case 1:
		return found[0]
	}
	return fmt.Sprintf("%s (and %d more)", found[0], len(found)-1)
}

// describeProblem returns one line about an operator that fails before it runs.
func describeProblem(err error, folders []string) string {
	text := err.Error()
	if i := strings.Index(text, "panic: "); i >= 0 {
		return summarize(text[i:], folders)
	}
	lines := strings.Split(strings.TrimSpace(text), "\n")
	return lines[len(lines)-1]
}
