package peering

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/kind"
)

var (
	clusterKind    = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering"}
	namespacedKind = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true}
	clusterPlace   = Place{Info: clusterKind}
)

// server keeps objects in memory, merges patches into them, and lets them be
// watched: in virtual time.
type server struct {
	mu       sync.Mutex
	started  time.Time
	version  int
	objects  map[string]map[string]any // by path
	watches  map[*watch]bool
	requests []string // "5s PATCH /path {body}" of all but watches

	// fault, if set, may answer a request other than a watch instead.
	fault func(*http.Request) (*http.Response, error)
}

func newServer() *server {
	return &server{started: time.Now(), objects: map[string]map[string]any{}, watches: map[*watch]bool{}}
}

func (s *server) client(t *testing.T, log *slog.Logger) *kube.Client {
	t.Helper()
	o := kube.DefaultOptions()
	o.Log = log
	c, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: s}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.URL.Query().Has("watch") {
		return s.watch(req), nil
	}
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%v %s %s %s", time.Since(s.started).Truncate(time.Second), req.Method, req.URL.Path, body))
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		if resp, err := fault(req); resp != nil || err != nil {
			return resp, err
		}
	}
	if req.Method != http.MethodPatch {
		return refuse(req, http.StatusMethodNotAllowed), nil
	}
	return s.patch(req, body), nil
}

func (s *server) patch(req *http.Request, body []byte) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := strings.TrimSuffix(req.URL.Path, "/status")
	o, ok := s.objects[path]
	if !ok {
		return refuse(req, http.StatusNotFound)
	}
	var change struct {
		Metadata struct{ ResourceVersion string }
	}
	_ = json.Unmarshal(body, &change)
	if v := change.Metadata.ResourceVersion; v != "" && v != o["metadata"].(map[string]any)["resourceVersion"] {
		return refuse(req, http.StatusConflict)
	}
	before, _ := json.Marshal(o)
	after, err := jsonpatch.MergePatch(before, body)
	if err != nil {
		return refuse(req, http.StatusBadRequest)
	}
	if !jsonpatch.Equal(before, after) {
		var changed map[string]any
		_ = json.Unmarshal(after, &changed)
		s.store("MODIFIED", path, changed)
	}
	raw, _ := json.Marshal(s.objects[path])
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(raw)))
}

// store keeps an object and tells the watches. The mutex is held.
func (s *server) store(event, path string, o map[string]any) {
	s.version++
	o["metadata"].(map[string]any)["resourceVersion"] = strconv.Itoa(s.version)
	if s.objects[path] = o; event == "DELETED" {
		delete(s.objects, path)
	}
	for w := range s.watches {
		if strings.HasPrefix(path, w.path+"/") {
			w.send(event, o)
		}
	}
}

func (s *server) path(p Place, name string) string {
	path, err := kube.Target{Info: p.Info, Namespace: p.Namespace, Name: name}.Path()
	if err != nil {
		panic(err)
	}
	return path
}

// create makes a peering object with records of "priority lifetime lastseen".
func (s *server) create(p Place, name string, status map[string]any) {
	s.mu.Lock()
	defer s.mu.Unlock()
	meta := map[string]any{"name": name, "uid": fmt.Sprintf("uid-%d", s.version+1)}
	if p.Namespace != "" {
		meta["namespace"] = p.Namespace
	}
	o := map[string]any{"apiVersion": p.Info.APIVersion(), "kind": p.Info.Kind, "metadata": meta}
	if status != nil {
		o["status"] = status
	}
	s.store("ADDED", s.path(p, name), o)
}

func (s *server) delete(p Place, name string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	path := s.path(p, name)
	s.store("DELETED", path, s.objects[path])
}

// merge is a change made by somebody else.
func (s *server) merge(t *testing.T, p Place, name string, format string, args ...any) {
	t.Helper()
	req, _ := http.NewRequest(http.MethodPatch, "http://server"+s.path(p, name), nil)
	if resp := s.patch(req, fmt.Appendf(nil, format, args...)); resp.StatusCode != http.StatusOK {
		t.Fatalf("patch: %d", resp.StatusCode)
	}
}

// status is that of a peering object now.
func (s *server) status(p Place, name string) map[string]any {
	s.mu.Lock()
	defer s.mu.Unlock()
	status, _ := s.objects[s.path(p, name)]["status"].(map[string]any)
	return status
}

// sent are the requests so far, and forgets them.
func (s *server) sent() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	sent := s.requests
	s.requests = nil
	return sent
}

func (s *server) fail(f func(*http.Request) (*http.Response, error)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.fault = f
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
	w := &watch{path: req.URL.Path, events: make(chan []byte, 10000), ctx: req.Context()}
	if req.URL.Query().Get("timeoutSeconds") == "" { // no probe
		s.watches[w] = true
		context.AfterFunc(req.Context(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.watches, w)
		})
	}
	if req.URL.Query().Get("sendInitialEvents") == "true" {
		for path, o := range s.objects {
			if strings.HasPrefix(path, w.path+"/") {
				w.send("ADDED", o)
			}
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

// logLines collects what is logged, but for what the client says of requests.
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
	l.lines = append(l.lines, r.Level.String()+" "+r.Message)
	return nil
}

// take are the lines of a level so far, all of which are forgotten.
func (l *logLines) take(level string) (lines []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, line := range l.lines {
		if strings.HasPrefix(line, level) {
			lines = append(lines, line)
		}
	}
	l.lines = nil
	return lines
}
