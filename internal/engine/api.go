package engine

import (
	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/objects"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// forHandlers is how handlers reach the cluster.
func (s *server) forHandlers() registry.API {
	if s.ForHandlers == nil {
		return s
	}
	return s.ForHandlers(s)
}

// RESTConfig configures other clients of the cluster.
func (s *server) RESTConfig() *rest.Config { return s.client.RESTConfig() }

// Objects reads and writes objects of any kind.
func (s *server) Objects() *objects.Client { return &objects.Client{API: s.client, Known: s.found} }

// found is all that the cluster has, as far as is known.
func (s *server) found() []kind.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// Post has a Kubernetes event posted.
func (s *server) Post(e posting.Event) { s.poster.Post(e) }
