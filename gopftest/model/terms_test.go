package model_test

import (
	"context"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// term returns how often the process has become the leader. A process that loses the lease
// forgets all objects: when it leads again, it acts like a new process.
func (p *process) term() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.terms
}

// termLog counts the terms of a process by its log.
type termLog struct {
	slog.Handler
	process *process
}

// Enabled implements slog.Handler.
func (l termLog) Enabled(ctx context.Context, level slog.Level) bool {
	return level == slog.LevelInfo || l.Handler.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l termLog) Handle(ctx context.Context, r slog.Record) error {
	if p := l.process; r.Message == "This replica leads." && !p.isDead() {
		p.mu.Lock()
		p.terms++
		p.mu.Unlock()
		p.world.history.add("p%d leads", p.n)
	}
	if !l.Handler.Enabled(ctx, r.Level) {
		return nil
	}
	return l.Handler.Handle(ctx, r)
}

// WithAttrs implements slog.Handler.
func (l termLog) WithAttrs(attrs []slog.Attr) slog.Handler {
	return termLog{l.Handler.WithAttrs(attrs), l.process}
}

// WithGroup implements slog.Handler.
func (l termLog) WithGroup(name string) slog.Handler {
	return termLog{l.Handler.WithGroup(name), l.process}
}

// leadersAreCounted checks that the terms of the leader are known.
func (o *oracle) leadersAreCounted(w *world) {
	for _, p := range w.serving() {
		if w.election && w.leader() == p.identity() && p.term() == 0 {
			o.wrong("process %d leads, but its log does not say so", p.n)
		}
	}
}

func TestAReplicaThatLeadsAgainCountsAsANewProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, declaration{lifecycle: "asap", storage: "annotations", statusSub: true, handlers: []handler{
			{id: "h", kind: "change", on: gopf.Create | gopf.Resume}, {id: "event", kind: "event"},
		}}, environment{})
		w.election, w.slots, w.versions = true, make([]*process, 1), make([]int, 1)
		p := w.start(w.declaration, 0)
		quiet(time.Second)
		c := content{spec: map[string]string{"a": `"x0"`}}
		w.create("stays", c, false)
		w.create("goes", c, false)
		quiet(time.Minute)
		w.fault(gopftest.Requests("", "leases"), gopftest.Drop())
		quiet(2 * time.Minute)
		w.delete("goes")
		w.calm()
		w.rest()
		w.fault(gopftest.Requests("", "leases"), gopftest.Drop())
		quiet(2 * time.Minute)
		w.calm()
		w.rest()
		w.oracle.settled(w)
		w.end()
		if len(w.oracle.problems) > 0 || p.term() != 3 || !strings.Contains(w.history.String(), "h(resume) stays") {
			t.Errorf("%d terms, problems: %q\n%s", p.term(), w.oracle.problems, w.history)
		}
	})
}
