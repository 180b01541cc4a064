package gopftest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is a request that a client sent to the cluster.
type Request struct {
	Verb        string // RBAC verb: get, list, watch, create, update, patch, delete, deletecollection; empty for other paths
	Method      string
	Path        string // including the query
	Group       string
	Version     string
	Resource    string // plural name
	Subresource string
	Namespace   string
	Name        string
	Header      http.Header
	Body        []byte
	Time        time.Time // of arrival

	// Code is the status code of the response. 0 means that none was sent so far.
	Code int
}

// Write reports whether the request is meant to change objects. Access reviews are not.
func (r Request) Write() bool {
	if r.Group == "authorization.k8s.io" || r.Group == "authentication.k8s.io" {
		return false // reviews are POST requests, but nothing is stored
	}
	return slices.Contains([]string{"create", "update", "patch", "delete", "deletecollection"}, r.Verb)
}

// requestLog records all requests.
type requestLog struct {
	mu        sync.Mutex
	entries   []*logged
	forgetful bool // keep nothing; for clusters that run for days
}

// logged is a request in the log. The lock of the log protects it.
type logged struct {
	log *requestLog
	Request
}

func (l *requestLog) add(r Request) *logged {
	l.mu.Lock()
	defer l.mu.Unlock()
	e := &logged{l, r}
	if !l.forgetful {
		l.entries = append(l.entries, e)
	}
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

// Requests returns all requests so far, in order of arrival. The test's own reads and
// writes through the methods of the cluster are not included.
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

// Writes returns the requests so far that were meant to change objects of the given
// resources (plural names). No arguments mean all resources.
func (c *Cluster) Writes(resources ...string) []Request {
	return slices.DeleteFunc(c.Requests(), func(r Request) bool {
		return !r.Write() || len(resources) > 0 && !slices.Contains(resources, r.Resource)
	})
}
