// Package fakeobject is an API server with one or a few objects, for tests.
//
// It implements versions, merge patches and watches like the real one. It uses the clock
// of the process, so tests can run in the virtual time of testing/synctest. Tests inject
// faults by their own transports, which call Answer in the end.
package fakeobject

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"maps"
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

// Object is a decoded JSON object.
type Object = map[string]any

// Server holds objects by path.
type Server struct {
	Started time.Time

	mu      sync.Mutex
	version int
	objects map[string]Object
	watches map[*watch]bool
}

// NewServer returns a server without objects.
func NewServer() *Server {
	return &Server{Started: time.Now(), objects: map[string]Object{}, watches: map[*watch]bool{}}
}

// Second returns the age of the server in whole seconds.
func (s *Server) Second() time.Duration { return time.Since(s.Started).Truncate(time.Second) }

// Client returns a client whose requests go through the transport. It logs nothing.
func Client(t *testing.T, transport http.RoundTripper) *kube.Client {
	t.Helper()
	o := kube.DefaultOptions()
	o.Log = slog.New(slog.DiscardHandler)
	c, err := kube.NewClient(&rest.Config{Host: "http://server", Transport: transport}, o)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// IsWatch reports whether the request is a watch.
func IsWatch(req *http.Request) bool { return req.URL.Query().Has("watch") }

// Answer returns the response to a request with the body: a watch of a collection, or a
// POST, GET or merge PATCH of an object or of its status.
func (s *Server) Answer(req *http.Request, body []byte) *http.Response {
	s.mu.Lock()
	defer s.mu.Unlock()
	if IsWatch(req) {
		return s.watch(req)
	}
	name := strings.TrimSuffix(req.URL.Path, "/status")
	var sent struct {
		Metadata struct{ Name, ResourceVersion string }
	}
	_ = json.Unmarshal(body, &sent) // an invalid body has no name
	if req.Method == http.MethodPost {
		name += "/" + sent.Metadata.Name
	}
	o, exists := s.objects[name]
	switch {
	case req.Method == http.MethodPost && exists:
		return Refuse(req, http.StatusConflict)
	case req.Method == http.MethodPost:
		var made Object
		if err := json.Unmarshal(body, &made); err != nil {
			return Refuse(req, http.StatusBadRequest)
		}
		s.store("ADDED", name, made)
	case !exists:
		return Refuse(req, http.StatusNotFound)
	case req.Method == http.MethodPatch:
		if v := sent.Metadata.ResourceVersion; v != "" && v != o["metadata"].(Object)["resourceVersion"] {
			return Refuse(req, http.StatusConflict)
		}
		before, _ := json.Marshal(o)
		after, err := jsonpatch.MergePatch(before, body)
		if err != nil {
			return Refuse(req, http.StatusBadRequest)
		}
		if !jsonpatch.Equal(before, after) {
			var changed Object
			_ = json.Unmarshal(after, &changed) // it is valid JSON
			s.store("MODIFIED", name, changed)
		}
	case req.Method != http.MethodGet:
		return Refuse(req, http.StatusMethodNotAllowed)
	}
	raw, _ := json.Marshal(s.objects[name])
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(raw)))
}

// Create creates an object at the path on behalf of another client.
func (s *Server) Create(at string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store("ADDED", at, o)
}

// Merge applies a merge patch to the object at the path on behalf of another client.
func (s *Server) Merge(t *testing.T, at, patch string) {
	t.Helper()
	req, err := http.NewRequest(http.MethodPatch, "http://server"+at, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp := s.Answer(req, []byte(patch))
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		t.Fatalf("patch: %d", resp.StatusCode)
	}
}

// Delete deletes the object at the path, if it exists.
func (s *Server) Delete(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[at]; o != nil {
		s.store("DELETED", at, o)
	}
}

// Object returns the object at the path. nil means that there is none. The caller must
// not change it.
func (s *Server) Object(at string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[at]
}

// Writes returns the number of changes by all clients.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// store saves an object as the next version, and notifies the watches. The mutex must be
// held.
func (s *Server) store(event, at string, o Object) {
	s.version++
	meta := maps.Clone(o["metadata"].(Object))
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if event == "ADDED" {
		meta["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	o = maps.Clone(o) // readers may still use the last version
	o["metadata"] = meta
	if s.objects[at] = o; event == "DELETED" {
		delete(s.objects, at)
	}
	for w := range s.watches {
		if w.path == path.Dir(at) {
			w.send(event, o)
		}
	}
}

// Refuse returns a response with an error code and a matching Status.
func Refuse(req *http.Request, code int) *http.Response {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict"}[code]
	status := fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"rejected by the test"}`, code, reason)
	return respond(req, code, io.NopCloser(strings.NewReader(status)))
}

func respond(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Request: req, Body: body}
}
