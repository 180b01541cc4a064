// Package fakeobject is an API server of one object, for tests: of one, or of the
// few that some code has to do with.
//
// It does what the real one does about versions, merge patches and watches, in the
// time of the process: tests move it with testing/synctest. What happens to requests
// on their way is left to the transports of the tests, which end in Answer.
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

// Object is one as it is in JSON.
type Object = map[string]any

// Server keeps objects by their paths.
type Server struct {
	Started time.Time

	mu      sync.Mutex
	version int
	objects map[string]Object
	watches map[*watch]bool
}

// NewServer makes a server without objects.
func NewServer() *Server {
	return &Server{Started: time.Now(), objects: map[string]Object{}, watches: map[*watch]bool{}}
}

// Second is how long the server is there, in whole seconds.
func (s *Server) Second() time.Duration { return time.Since(s.Started).Truncate(time.Second) }

// Client makes a client whose requests go through the transport. It logs nothing.
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

// IsWatch tells whether the request is for a watch.
func IsWatch(req *http.Request) bool { return req.URL.Query().Has("watch") }

// Answer is the server's to a request with the body: a watch of a collection, or a
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
	_ = json.Unmarshal(body, &sent) // what is no object names none
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
			_ = json.Unmarshal(after, &changed) // it was made of JSON just now
			s.store("MODIFIED", name, changed)
		}
	case req.Method != http.MethodGet:
		return Refuse(req, http.StatusMethodNotAllowed)
	}
	raw, _ := json.Marshal(s.objects[name])
	return respond(req, http.StatusOK, io.NopCloser(bytes.NewReader(raw)))
}

// Create makes an object at the path, as somebody else does.
func (s *Server) Create(at string, o Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.store("ADDED", at, o)
}

// Merge changes the object at the path by a merge patch, as somebody else does.
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

// Delete removes the object at the path, if it is there.
func (s *Server) Delete(at string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if o := s.objects[at]; o != nil {
		s.store("DELETED", at, o)
	}
}

// Object is the one at the path now; nil if there is none. It is not to be changed.
func (s *Server) Object(at string) Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.objects[at]
}

// Writes is how many changes were made, by whomever.
func (s *Server) Writes() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.version
}

// store keeps an object as the next version, and tells the watches. The mutex is
// held.
func (s *Server) store(event, at string, o Object) {
	s.version++
	meta := maps.Clone(o["metadata"].(Object))
	meta["resourceVersion"] = strconv.Itoa(s.version)
	if event == "ADDED" {
		meta["uid"] = fmt.Sprintf("uid-%d", s.version)
	}
	o = maps.Clone(o) // whoever has the last version goes on reading it
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

// Refuse is an answer with a code and the status that goes with it.
func Refuse(req *http.Request, code int) *http.Response {
	reason := map[int]string{403: "Forbidden", 404: "NotFound", 409: "Conflict"}[code]
	status := fmt.Sprintf(`{"kind":"Status","status":"Failure","code":%d,"reason":%q,"message":"no way"}`, code, reason)
	return respond(req, code, io.NopCloser(strings.NewReader(status)))
}

func respond(req *http.Request, code int, body io.ReadCloser) *http.Response {
	return &http.Response{StatusCode: code, Header: http.Header{}, Request: req, Body: body}
}
