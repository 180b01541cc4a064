package gopftest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is what a client asked of the API.
type Request struct {
	Verb        string // as in roles: get, list, watch, create, update, patch, delete, deletecollection; empty for other paths
	Method      string
	Path        string // with the query
	Group       string
	Version     string
	Resource    string // the plural
	Subresource string
	Namespace   string
	Name        string
	Header      http.Header
	Body        []byte
	Time        time.Time // when it came

	// Code is the status of the answer; 0 if there is none yet, or none was sent.
	Code int
}

// Write says that the request is to change something.
func (r Request) Write() bool {
	if r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io" {
		return false // questions that are asked by creating something that is not stored
	}
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// requestLog remembers all requests.
type requestLog struct {
	mu      sync.Mutex
	entries []*logged
}

// logged is a request in the log; the lock of the log protects it.
type logged struct {
	log *requestLog
	Request
}

func (l *requestLog) add(r Request) *logged {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &logged{l, r}
	l.entries = append(l.entries, e)
	return e
}

func (e *logged) answered(code int) {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	e.Code = code
}

func (e *logged) snapshot() Request {
	e.log.mu.Lock()
	defer e.log.mu.Unlock()
	return e.Request
}

// Requests returns all requests so far, in the order in which they came. What a
// test does through the methods of the cluster is not among them.
func (c *Cluster) Requests() []Request {
	c.memoryOnly("Requests")
	c.requests.mu.Lock()
	defer c.requests.mu.Unlock()
	all := make([]Request, 0, len(c.requests.entries))
	for _, e := range c.requests.entries {
		all = append(all, e.Request)
	}
	return all
}

// Writes returns the requests that were to change something, of the given
// resources (plurals) or of all.
func (c *Cluster) Writes(resources ...string) []Request {
	return slices.DeleteFunc(c.Requests(), func(r Request) bool {
		return !r.Write() || len(resources) > 0 && !slices.Contains(resources, r.Resource)
	})
}
