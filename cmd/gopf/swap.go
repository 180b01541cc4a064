package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// swap replaces the running operator with a new build. A failed build changes nothing.
func (l *loop) swap(ctx context.Context, a attempt) {
	if ctx.Err() != nil {
		return
	}
	saved := named(a.saved)
	l.pending = append(l.pending, a.breaks...)
	for _, note := range a.notes {
		l.say("%s → %s", saved, note)
	}
	if a.problem != "" {
		l.say("%s ← %s", a.problem, l.rest())
		return
	}
	if a.revision == nil {
		return
	}
	began := time.Now()
	if l.current != nil {
		l.keep(l.current.build)
		if !l.current.stop(l.stop.second) && !l.current.build.debug {
			l.say("the previous operator did not stop within %v and was killed", grace)
		}
		if l.current.build.debug {
			l.release(ctx)
		}
		l.current = nil
	}
	if err := l.start(a.revision); err != nil {
		l.say("%v", err)
		l.restore()
		return
	}
	l.say("%s → built %s → swapped %s%s", saved, seconds(a.took), seconds(time.Since(began)), l.debugging(a.revision))
	if l.tests {
		go l.test(ctx)
	}
}

// release frees the leases of an operator that ran under the debugger.
func (l *loop) release(ctx context.Context) {
	if l.died == nil { // on a cluster of others, the lease may belong to another developer
		l.say("the lease of the debugged operator stays for up to %v; delete it if the operator uses leader election", debuggerLease)
		return
	}
	ctx, cancel := context.WithTimeout(ctx, grace)
	defer cancel()
	if err := releaseLeases(ctx, l.kubeconfig); err != nil {
		l.say("the leases of the debugged operator are not released: %v", err)
	}
}

// keep makes the build the one to return to, and removes the former one.
func (l *loop) keep(v *revision) {
	if l.previous != nil && l.previous.number != v.number {
		_ = os.RemoveAll(filepath.Dir(l.previous.path)) // the whole folder is removed at the end
	}
	l.previous = v
}

// exited reports that the operator has exited by itself, in one line. A new build that fails
// is replaced by the previous one.
func (l *loop) exited(ctx context.Context) {
	c := l.current
	l.current = nil
	if c.build.debug {
		l.release(ctx)
	}
	reason := "the operator exited"
	if c.err != nil {
		reason += " with " + c.err.Error()
	}
	if trace := c.crash.crashed(); trace != "" {
		reason = summarize(trace, l.files.folders)
		path := filepath.Join(l.temp, "crash.txt")
		if err := os.WriteFile(path, []byte(trace), 0o600); err == nil {
			reason += " (stack trace: " + path + ")"
		}
	}
	if l.previous != nil && l.previous.number != c.build.number && time.Since(c.since) < settled {
		l.restore()
		_ = os.RemoveAll(filepath.Dir(c.build.path)) // the whole folder is removed at the end
	}
	l.say("%s ← %s", reason, l.rest())
}

// restore starts the previous build again.
func (l *loop) restore() {
	if l.previous == nil {
		return
	}
	if err := l.start(l.previous); err != nil {
		l.say("%v", err)
	}
}

// rest says what runs after a failure.
func (l *loop) rest() string {
	if l.current == nil {
		return "no operator runs; save a file to build it again"
	}
	return "the previous build keeps running"
}

func (l *loop) debugging(v *revision) string {
	if !v.debug {
		return ""
	}
	return " → the debugger listens on " + debuggerAddress
}

// named returns the names of saved files for one line.
func named(paths []string) string {
	if len(paths) == 0 {
		return "reload"
	}
	var names []string
	for _, path := range paths {
		names = append(names, filepath.Base(path))
	}
	if len(names) > 3 {
		names = append(names[:2], fmt.Sprint("and ", len(names)-2, " more"))
	}
	return strings.Join(names, ", ") + " saved"
}

func seconds(d time.Duration) string { return fmt.Sprintf("%.1f s", d.Seconds()) }
