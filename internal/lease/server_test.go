package lease

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"path"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
)

// server keeps leases in memory and can be unreliable, in virtual time.
type server struct {
	mu      sync.Mutex
	started time.Time
	version int
	objects map[string]map[string]any
	watches map[*watch]bool
	writes  int // that were applied
	packets sync.WaitGroup
}

func newServer(t *testing.T) *server {
	s := &server{started: time.Now(), objects: map[string]map[string]any{}, watches: map[*watch]bool{}}
	t.Cleanup(s.packets.Wait)
	return s
}

// way is the way of one elector to the server.
type way struct {
	*server
	fault func(*http.Request) fault // says what happens to a request
}

// set makes the way as it is to be from now on.
func (w *way) set(f func(*http.Request) fault) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.fault = f
}

// fault is something that happens to a request on its way; the zero value is
// none.
type fault struct {
	before, after time.Duration // delays on the way there and back
	drop, lose    bool          // it never arrives; its answer never does
	refuse        int           // the server answers with that code instead
}

var errReset = errors.New("connection reset by peer")

func (w *way) RoundTrip(req *http.Request) (*http.Response, error) {
	w.mu.Lock()
	happens := w.fault
	w.mu.Unlock()
	var f fault
	if happens != nil {
		f = happens(req)
	}
	watching := req.URL.Query().Has("watch")
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	answer := make(chan *http.Response, 1)
	w.packets.Go(func() { // what was sent arrives, whether the sender still waits or not
		time.Sleep(f.before)
		var resp *http.Response
		switch {
		case f.drop:
		case f.refuse != 0:
			resp = refuse(req, f.refuse)
		case watching:
			resp = w.watch(req)
		default:
			resp = w.apply(req, body)
		}
		time.Sleep(f.after)
		if f.lose {
			resp = nil
		}
		answer <- resp
	})
	select {
	case <-req.Context().Done():
		return nil, req.Context().Err()
	case resp := <-answer:
		if resp == nil {
			return nil, errReset
		}
		return resp, nil
	}
}

func (s *server) apply(req *http.Request, body []byte) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := req.URL.Path
	var sent struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	_ = json.Unmarshal(body, &sent)
	if req.Method == http.MethodPost {
		name += "/" + sent.Metadata.Name
	}
	o, exists := s.objects[name]
	switch {
	case strings.Contains(name, "/nowhere/"):
		return refuse(req, http.StatusNotFound)
	case req.Method == http.MethodPost && exists:
		return refuse(req, http.StatusConflict)
	case req.Method == http.MethodPost:
		var made map[string]any
		_ = json.Unmarshal(body, &made)
		s.store("ADDED", name, made)
	case !exists:
		return refuse(req, http.StatusNotFound)
	case req.Method == http.MethodPatch:
		if v := sent.Metadata.ResourceVersion; v != "" && v != o["metadata"].(map[string]any)["resourceVersion"] {
			return refuse(req, http.StatusConflict)
		}
		before, _ := json.Marshal(o)
		after, err := jsonpatch.MergePatch(before, body)
		if err != nil {
			return refuse(req, http.StatusBadRequest)
		}
		var changed map[string]any
		_ = json.Unmarshal(after, &changed)
		s.store("MODIFIED", name, changed)
	}
	raw, _ := json.Marshal(s.objects[name])
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(raw)))
}

// store keeps an object and tells the watches. The mutex is held.
func (s *server) store(event, name string, o map[string]any) {
	s.version++
	s.writes++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	if s.objects[name] = o; event == "DELETED" {
		delete(s.objects, name)
	}
	for w := range s.watches {
		if w.path == path.Dir(name) {
			w.send(event, o)
		}
	}
}

const leasePath = "/apis/coordination.k8s.io/v1/namespaces/ns/leases/op"

// edit is a change that somebody makes by hand.
func (s *server) edit(t *testing.T, patch string) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPatch, "http://server"+leasePath, nil)
	if resp := s.apply(req, []byte(patch)); resp.StatusCode != http.StatusOK {
		t.Fatalf("patch: %d", resp.StatusCode)
	}
}

func (s *server) delete() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[leasePath]; o != nil {
		s.store("DELETED", leasePath, o)
	}
}

// spec is that of the lease now.
func (s *server) spec() map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	spec, _ := s.objects[leasePath]["spec"].(map[string]any)
	return spec
}

// watch is an open watch of a collection.
type watch struct {
	path   string
	events chan []byte
	ctx    context.Context
	rest   []byte
}

func (s *server) watch(req *http.Request) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	w := &watch{path: req.URL.Path, events: make(chan []byte, 100000), ctx: req.Context()}
	if req.URL.Query().Get("timeoutSeconds") == "" { // no probe
		s.watches[w] = true
		context.AfterFunc(req.Context(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.watches, w)
		})
	}
	if req.URL.Query().Get("sendInitialEvents") == "true" {
		for _, o := range s.objects {
			w.send("ADDED", o)
		}
		w.send("BOOKMARK", map[string]any{"metadata": map[string]any{"resourceVersion": strconv.Itoa(s.version),
			"annotations": map[string]any{"k8s.io/initial-events-end": "true"}}})
	}
	return respond(req, http.StatusOK, w)
}

func (w *watch) send(event string, o map[string]any) {
	raw, _ := json.Marshal(map[string]any{"type": event, "object": o})
	w.events <- raw
}

func (w *watch) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		select {
		case w.rest = <-w.events:
		case <-w.ctx.Done():
			return 0, w.ctx.Err()
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

func (w *watch) Close() error { return nil }

func respond(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Request: req, Body: body}
}

func refuse(req *http.Request, code int) *http.Response {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict"}[code]
	status := fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"no way"}`, code, reason)
	return respond(req, code, io.NopCloser(strings.NewReader(status)))
}

// replica is an elector under test.
type replica struct {
	*Elector
	way   *way
	log   *logLines
	stop  func() // and waits for it
	work  func(context.Context)
	terms []string // "3s" when it was elected, "9s lost", "9s done"
	mu    sync.Mutex
}

func (s *server) join(t *testing.T, identity string, adjust ...func(*replica)) *replica {
	t.Helper()
	r := &replica{way: &way{server: s}, log: &logLines{}, work: func(ctx context.Context) { <-ctx.Done() }}
	o := kube.DefaultOptions()
	o.Log = slog.New(slog.DiscardHandler)
	client, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: r.way}, o)
	if err != nil {
		t.Fatal(err)
	}
	c := DefaultConfig(client, "ns", "op", identity)
	c.Log = slog.New(r.log)
	if r.Elector, err = New(c); err != nil {
		t.Fatal(err)
	}
	for _, a := range adjust {
		a(r)
	}
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	done := make(chan struct{})
	note := func(text string) {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.terms = append(r.terms, time.Since(s.started).Truncate(time.Second).String()+text)
	}
	go func() {
		defer close(done)
		r.Run(ctx, func(ctx context.Context) {
			note("")
			r.work(ctx)
			var lost *LostError
			if errors.As(context.Cause(ctx), &lost) {
				note(" lost")
				return
			}
			note(" done")
		})
	}()
	r.stop = func() { cancel(); <-done }
	t.Cleanup(r.stop)
	return r
}

func (r *replica) history() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.terms
}

func (r *replica) leading() bool { return !r.Until().IsZero() }

// logLines collects what is logged.
type logLines struct {
	mu    sync.Mutex
	lines []string
}

func (l *logLines) Enabled(context.Context, slog.Level) bool { return true }
func (l *logLines) WithAttrs([]slog.Attr) slog.Handler       { return l }
func (l *logLines) WithGroup(string) slog.Handler            { return l }

func (l *logLines) Handle(_ context.Context, r slog.Record) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	line := r.Level.String() + " " + r.Message
	r.Attrs(func(a slog.Attr) bool {
		if a.Key == "needed" {
			line += " " + a.Value.String()
		}
		return true
	})
	l.lines = append(l.lines, line)
	return nil
}

func (l *logLines) warnings() (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line, "WARN") {
			lines = append(lines, line)
		}
	}
	return lines
}

// lockedSource makes a source of randomness safe for concurrent use.
type lockedSource struct {
	mu     sync.Mutex
	source rand.Source
}

func (l *lockedSource) Uint64() uint64 {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.source.Uint64()
}
