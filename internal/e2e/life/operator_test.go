package life_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
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

// newOperator makes an operator that meets nobody and recovers from errors
// faster than usual.
func newOperator() *gopf.Operator {
	op := gopf.New()
	op.Settings.Peering.Standalone = true
	op.Settings.Networking.ErrorBackoffs = gopf.Pauses(50*time.Millisecond, 100*time.Millisecond, 200*time.Millisecond)
	op.Settings.Queueing.ErrorDelays = []time.Duration{100 * time.Millisecond, 500 * time.Millisecond}
	op.Settings.Execution.DefaultBackoff = 200 * time.Millisecond
	return op
}

// operator is one that runs.
type operator struct {
	t      *testing.T
	log    *logbook
	ready  chan struct{}
	cancel context.CancelFunc
	done   chan struct{}
	err    error // after it is done
}

// start runs the operator in the namespace until it is stopped or the test ends.
// Later options override those.
func (s *space) start(op *gopf.Operator, options ...gopf.RunOption) *operator {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	o := &operator{t: s.t, cancel: cancel, done: make(chan struct{}), ready: make(chan struct{}), log: &logbook{}}
	log := slog.New(logs.New(o.log, logs.Options{Format: logs.Full, Level: slog.LevelDebug, Prefix: true}))
	all := append([]gopf.RunOption{
		gopf.Cluster(rest.CopyConfig(cluster)), gopf.Namespaces(s.name), gopf.Log(log), gopf.WhenReady(func() { close(o.ready) }),
	}, options...)
	go func() {
		defer close(o.done)
		o.err = op.Run(ctx, all...)
	}()
	s.t.Cleanup(func() {
		o.cancel()
		<-o.done
		if s.t.Failed() {
			s.t.Logf("the operator's log:\n%s", o.log)
		}
	})
	return o
}

// serving waits until the operator serves.
func (o *operator) serving() *operator {
	o.t.Helper()
	select {
	case <-o.ready:
	case <-o.done:
		o.t.Fatalf("the operator has ended: %v", o.err)
	case <-time.After(patience):
		o.t.Fatal("the operator does not begin to serve")
	}
	return o
}

// stop ends the operator gracefully.
func (o *operator) stop() {
	o.t.Helper()
	o.cancel()
	if err := o.wait(); err != nil {
		o.t.Errorf("the operator has failed: %v", err)
	}
}

// wait waits for the end of the operator.
func (o *operator) wait() error {
	o.t.Helper()
	select {
	case <-o.done:
		return o.err
	case <-time.After(patience):
		o.t.Fatal("the operator does not end")
		return nil
	}
}

// logbook keeps log lines.
type logbook struct {
	mu  sync.Mutex
	all bytes.Buffer
}

func (l *logbook) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.Write(p)
}

func (l *logbook) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// with are the lines that contain all of the texts.
func (l *logbook) with(texts ...string) (found []string) {
	for line := range strings.Lines(l.String()) {
		if !slices.ContainsFunc(texts, func(text string) bool { return !strings.Contains(line, text) }) {
			found = append(found, line)
		}
	}
	return found
}

func (l *logbook) waitFor(t *testing.T, texts ...string) {
	t.Helper()
	eventually(t, fmt.Sprintf("a line with %q", texts), func() bool { return len(l.with(texts...)) > 0 })
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
	return slices.Clone(d.lines)
}

func (d *diary) has(line string) bool { return slices.Contains(d.all(), line) }

func (d *diary) waitFor(t *testing.T, line string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%q is noted", line), func() bool { return d.has(line) })
}

func (d *diary) check(t *testing.T, want ...string) {
	t.Helper()
	if got := d.all(); !slices.Equal(got, want) {
		t.Errorf("calls:\ngot  %q\nwant %q", got, want)
	}
}

// handles declares handlers that note what they handle under a name.
func (d *diary) handles(op *gopf.Operator, name string) *gopf.Resource[*Example] {
	x := gopf.For[*Example](op, examples)
	note := func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("%s %s %s", name, c.Reason, c.Object.Spec.Field)
		return nil
	}
	x.OnCreate("create", note)
	x.OnUpdate("update", note)
	return x
}

// freeAddress is one that nobody listens at.
func freeAddress(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// fetch asks for a page; the code is 0 if there is no answer.
func fetch(url string) (code int, body string) {
	client := &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}
	resp, err := client.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer resp.Body.Close()
	text, _ := io.ReadAll(resp.Body)
	return resp.StatusCode, string(text)
}

// waitCode waits until a page answers with the code, and returns what it says.
func waitCode(t *testing.T, url string, code int) (body string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s answers with %d", url, code), func() bool {
		var got int
		got, body = fetch(url)
		return got == code
	})
	return body
}

func withCluster(config *rest.Config) gopf.RunOption { return gopf.Cluster(config) }

// longHandler waits until it is cancelled, and tells why it was; but only for
// objects whose field is "long".
func longHandler(d *diary, cancelled chan<- error) gopf.ChangeFunc[*Example] {
	return func(ctx context.Context, c *gopf.Change[*Example]) error {
		if c.Object.Spec.Field != "long" {
			return nil
		}
		d.add("it takes long")
		<-ctx.Done()
		cancelled <- context.Cause(ctx)
		return ctx.Err()
	}
}
