package handling_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"
)

// wire is an operator's connection to the cluster. It counts what goes over it,
// and things may happen to it.
type wire struct {
	mu      sync.Mutex
	dead    bool
	writes  []write
	watched map[string]bool // resources of which a watch was answered
	streams map[io.Closer]bool

	// without and expired are resources whose reads are disturbed; see [wire.cut].
	without, expired string
	relisted         bool

	// fate decides what happens to a write, given its number from 1; nil for
	// nothing. It may take its time, and change the world meanwhile.
	fate func(n int, w write) mishap
	// answered is called after each write that succeeded; nil for nothing.
	answered func(w write)
}

// write is a request that changes something.
type write struct {
	what  string // like "PATCH examples/x/status"
	body  string
	kind  string // of the patch: "merge" or "json"
	found int    // the code of the answer; 0 while there is none
}

// mishap is what happens to a write.
type mishap string

const (
	killedBefore mishap = "killed before"
	killedAfter  mishap = "killed after"
	answerLost   mishap = "answer lost"
	refused      mishap = "refused" // not sent at all, but the process lives
)

var errDead = &net.OpError{Op: "dial", Err: errors.New("the process is dead")}

func (w *wire) roundTrip(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	if w.isDead() {
		return nil, errDead
	}
	if strings.HasSuffix(r.URL.Path, "reviews") { // of permissions: they store nothing
		return next.RoundTrip(r)
	}
	if r.Method == http.MethodGet {
		return w.read(next, r)
	}
	n, fate := w.note(r)
	switch fate {
	case killedBefore:
		w.die()
		return nil, errDead
	case refused:
		return nil, &net.OpError{Op: "dial", Err: errors.New("refused for a test")}
	}
	if w.isDead() { // since it was asked what to do
		return nil, errDead
	}
	resp, err := next.RoundTrip(r)
	if err != nil {
		return nil, err
	}
	w.mu.Lock()
	w.writes[n-1].found = resp.StatusCode
	done, answered := w.writes[n-1], w.answered
	w.mu.Unlock()
	if answered != nil && resp.StatusCode/100 == 2 {
		answered(done)
	}
	switch fate {
	case killedAfter:
		resp.Body.Close()
		w.die()
		return nil, errors.New("the process is dead")
	case answerLost:
		resp.Body.Close()
		return nil, errors.New("the connection is broken")
	}
	return resp, nil
}

func (w *wire) read(next http.RoundTripper, r *http.Request) (*http.Response, error) {
	plural := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	if resp, err := w.disturbed(r, plural); resp != nil || err != nil {
		return resp, err
	}
	resp, err := next.RoundTrip(r)
	if err != nil || r.URL.Query().Get("watch") == "" || resp.StatusCode != http.StatusOK {
		return resp, err
	}
	resp.Body = &stream{resp.Body, w, plural}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead {
		resp.Body.Close()
		return nil, errDead
	}
	w.streams[resp.Body] = true
	w.watched[plural] = true
	return resp, nil
}

// stream is the body of a watch; it ends when the wire is cut.
type stream struct {
	io.ReadCloser
	wire *wire
	of   string // the resource
}

func (s *stream) Read(p []byte) (int, error) {
	n, err := s.ReadCloser.Read(p)
	if s.wire.isDead() {
		return 0, errDead
	}
	return n, err
}

// note counts a write and asks what is to happen to it.
func (w *wire) note(r *http.Request) (n int, fate mishap) {
	raw, _ := io.ReadAll(r.Body) // the body of a request is in memory
	r.Body = io.NopCloser(bytes.NewReader(raw))
	now := write{what: r.Method + " " + short(r.URL.Path), body: string(raw), kind: "merge"}
	if strings.Contains(r.Header.Get("Content-Type"), "json-patch") {
		now.kind = "json"
	}
	w.mu.Lock()
	w.writes = append(w.writes, now)
	n = len(w.writes)
	decide := w.fate
	w.mu.Unlock()
	if decide != nil {
		fate = decide(n, now)
	}
	return n, fate
}

// short is the part of a path behind the namespace.
func short(path string) string {
	if _, rest, found := strings.Cut(path, "/namespaces/"); found {
		_, path, _ = strings.Cut(rest, "/")
	}
	return path
}

func (w *wire) isDead() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.dead
}

// die cuts the connection: nothing more is read or written.
func (w *wire) die() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead = true
	for body := range w.streams {
		_ = body.(*stream).ReadCloser.Close()
	}
	clear(w.streams)
}

// all are the writes so far.
func (w *wire) all() []write {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]write{}, w.writes...)
}

// lines are the writes so far, like "PATCH examples/x/status".
func (w *wire) lines() []string {
	lines := []string{}
	for _, one := range w.all() {
		lines = append(lines, one.what)
	}
	return lines
}

// checkWrites compares the writes since the given number with what is wanted.
func (w *wire) checkWrites(t *testing.T, since int, want ...string) {
	t.Helper()
	got := w.lines()[since:]
	if fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("writes: got %q, want %q", got, want)
	}
}

func (w *wire) isWatched(plural string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.watched[plural]
}

func (w *wire) whenAnswered(do func(write)) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.answered = do
}
