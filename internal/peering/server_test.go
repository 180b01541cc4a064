package peering

import (
	"fmt"
	"io"
	"net/http"
	"sync"
	"testing"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/test/fakeobject"
	"gopf.dev/gopf/kind"
)

var (
	clusterKind    = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "clusterkopfpeerings", Kind: "ClusterKopfPeering"}
	namespacedKind = kind.Info{Group: "kopf.dev", Version: "v1", Plural: "kopfpeerings", Kind: "KopfPeering", Namespaced: true}
	clusterPlace   = Place{Info: clusterKind}
)

// server keeps peering objects in memory and records requests, in virtual time.
type server struct {
	*fakeobject.Server
	mu       sync.Mutex
	requests []string // "5s PATCH /path {body}" of all but watches

	// fault may respond instead to a request other than a watch. May be nil.
	fault func(*http.Request) (*http.Response, error)
}

func newServer() *server { return &server{Server: fakeobject.NewServer()} }

func (s *server) RoundTrip(req *http.Request) (*http.Response, error) {
	if fakeobject.IsWatch(req) {
		return s.Answer(req, nil), nil
	}
	var body []byte
	if req.Body != nil {
		body, _ = io.ReadAll(req.Body)
	}
	s.mu.Lock()
	s.requests = append(s.requests, fmt.Sprintf("%v %s %s %s", s.Second(), req.Method, req.URL.Path, body))
	fault := s.fault
	s.mu.Unlock()
	if fault != nil {
		if resp, err := fault(req); resp != nil || err != nil {
			return resp, err
		}
	}
	if req.Method != http.MethodPatch {
		return fakeobject.Refuse(req, http.StatusMethodNotAllowed), nil
	}
	return s.Answer(req, body), nil
}

func path(p Place, name string) string {
	path, err := kube.Target{Info: p.Info, Namespace: p.Namespace, Name: name}.Path()
	if err != nil {
		panic(err)
	}
	return path
}

// create creates a peering object with the given records.
func (s *server) create(p Place, name string, status map[string]any) {
	meta := map[string]any{"name": name}
	if p.Namespace != "" {
		meta["namespace"] = p.Namespace
	}
	o := map[string]any{"apiVersion": p.Info.APIVersion(), "kind": p.Info.Kind, "metadata": meta}
	if status != nil {
		o["status"] = status
	}
	s.Create(path(p, name), o)
}

// merge changes the object like another client.
func (s *server) merge(t *testing.T, p Place, name string, format string, args ...any) {
	t.Helper()
	s.Merge(t, path(p, name), fmt.Sprintf(format, args...))
}

// status returns the current status of a peering object.
func (s *server) status(p Place, name string) map[string]any {
	status, _ := s.Object(path(p, name))["status"].(map[string]any)
	return status
}

// sent returns the requests since the last call.
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
