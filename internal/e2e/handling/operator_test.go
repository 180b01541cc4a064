package handling_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/logs"
)

// newOperator makes an operator that recovers from errors faster than usual.
func newOperator() *gopf.Operator {
	op := gopf.New()
	ms := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	op.Settings.Networking.ErrorBackoffs = gopf.Pauses(ms(50, 100, 200)...)
	op.Settings.Queueing.ErrorDelays = ms(100, 200, 500, 1000)
	op.Settings.Execution.DefaultBackoff = 200 * time.Millisecond
	op.Settings.Peering.Standalone = true // other tests on the same cluster have peerings
	return op
}

// operator is one that runs.
type operator struct {
	t      *testing.T
	wire   *wire
	log    *logbook
	cancel context.CancelFunc
	done   chan struct{}
}

// start runs the operator in the namespace until it is stopped, killed, or the
// test ends. What is to happen to its writes is decided by fate, if not nil.
func (s *space) start(op *gopf.Operator, fate func(n int, w write) mishap) *operator {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := &operator{
		t: s.t, cancel: cancel, done: make(chan struct{}),
		wire: &wire{fate: fate, watched: map[string]bool{}, streams: map[io.Closer]bool{}},
		log:  &logbook{out: s.t.Output()},
	}
	config := rest.CopyConfig(cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return o.wire.over(next) })
	log := slog.New(logs.New(o.log, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
	go func() {
		defer close(o.done)
		err := op.Run(ctx, gopf.Cluster(config), gopf.Namespaces(s.name), gopf.Log(log))
		if err != nil && !o.wire.isDead() {
			s.t.Errorf("the operator has failed: %v", err)
		}
	}()
	s.t.Cleanup(o.stop)
	return o
}

// supervise runs operators one after another, the next one when one has died,
// until the context is done. They are told which wire is theirs.
func (s *space) supervise(ctx context.Context, declare func(own func() *wire) *gopf.Operator, fate func(n int, w write) mishap) {
	for ctx.Err() == nil {
		var o *operator
		started := make(chan struct{})
		o = s.start(declare(func() *wire { <-started; return o.wire }), fate)
		close(started)
		for !o.wire.isDead() && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		o.stop()
	}
}

// over is the same wire over another transport: operators have several.
func (w *wire) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// following waits until the operator watches the resources.
func (o *operator) following(plurals ...string) *operator {
	o.t.Helper()
	eventually(o.t, func() error {
		for _, p := range plurals {
			if !o.wire.isWatched(p) {
				return fmt.Errorf("%s are not watched", p)
			}
		}
		return nil
	})
	return o
}

// stop ends the operator gracefully and waits for it.
func (o *operator) stop() {
	o.cancel()
	<-o.done
}

// kill makes the operator unable to do anything more, as if its process had been
// killed, and buries what is left of it.
func (o *operator) kill() {
	o.wire.die()
	o.stop()
}

// logbook keeps log lines, besides having them printed.
type logbook struct {
	out io.Writer
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.all.Write(p)
	return l.out.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// with are the lines that contain the text.
func (l *logbook) with(text string) []string {
	return slices.DeleteFunc(strings.Split(l.String(), "\n"), func(line string) bool { return !strings.Contains(line, text) })
}

// diary is what handlers note down.
type diary struct {
	mu    sync.Mutex
	lines []string
}

func (d *diary) add(format string, args ...any) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lines = append(d.lines, fmt.Sprintf(format, args...))
}

func (d *diary) all() []string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return append([]string{}, d.lines...)
}

func (d *diary) count(line string) int {
	n := 0
	for _, l := range d.all() {
		if l == line {
			n++
		}
	}
	return n
}

// waitFor waits until the diary has the line.
func (d *diary) waitFor(t *testing.T, line string) {
	t.Helper()
	eventually(t, func() error {
		if d.count(line) == 0 {
			return fmt.Errorf("%q is not in %q", line, d.all())
		}
		return nil
	})
}

// check compares the whole diary.
func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	if got := d.all(); !slices.Equal(got, want) {
		t.Errorf("calls:\ngot  %q\nwant %q", got, want)
	}
}

// handler is a function that notes what it saw.
func (d *diary) handler(name string) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("%s %s %s", name, c.Reason, c.Object.Spec.Field)
		return nil
	}
}
