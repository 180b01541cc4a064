package fakeobject

import (
	"context"
	"encoding/json"
	"net/http"
	"path"
	"strconv"
)

// watch is an open watch of a collection, and the body of its response.
type watch struct {
	path   string
	events chan []byte
	req    *http.Request // the watch ends with its context
	rest   []byte
}

// watch opens a watch. The mutex must be held.
func (s *Server) watch(req *http.Request) *http.Response {
	w := &watch{path: req.URL.Path, events: make(chan []byte, 100000), req: req}
	if req.URL.Query().Get("timeoutSeconds") == "" { // not a probe
		s.watches[w] = true
		context.AfterFunc(req.Context(), func() {
			s.mu.Lock()
			defer s.mu.Unlock()
			delete(s.watches, w)
		})
	}
	if req.URL.Query().Get("sendInitialEvents") == "true" {
		for at, o := range s.objects {
			if w.path == path.Dir(at) {
				w.send("ADDED", o)
			}
		}
		w.send("BOOKMARK", Object{"metadata": Object{"resourceVersion": strconv.Itoa(s.version),
			"annotations": Object{"k8s.io/initial-events-end": "true"}}})
	}
	return respond(req, http.StatusOK, w)
}

func (w *watch) send(event string, o Object) {
	raw, _ := json.Marshal(Object{"type": event, "object": o})
	w.events <- raw
}

// Read implements io.Reader. It waits for the next event.
func (w *watch) Read(p []byte) (int, error) {
	if len(w.rest) == 0 {
		select {
		case w.rest = <-w.events:
		case <-w.req.Context().Done():
			return 0, w.req.Context().Err()
		}
	}
	n := copy(p, w.rest)
	w.rest = w.rest[n:]
	return n, nil
}

// Close does nothing: a watch ends with the context of its request.
func (w *watch) Close() error { return nil }
