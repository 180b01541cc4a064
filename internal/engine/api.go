package engine

import (
	"context"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
)

// forHandlers returns the API that handlers use.
func (s *server) forHandlers() handler.API {
	if s.ForHandlers == nil {
		return s
	}
	return s.ForHandlers(s)
}

// RESTConfig returns a configuration for other clients of the cluster.
func (s *server) RESTConfig() *rest.Config { return s.client.RESTConfig() }

// Objects returns a client for objects of any kind.
func (s *server) Objects() *apiclient.Objects {
	return &apiclient.Objects{API: s.client, Known: s.found}
}

// found returns the resources of the last discovery.
func (s *server) found() []kind.Info {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cluster
}

// Post queues a Kubernetes event. It does not wait for the API server.
func (s *server) Post(e recorder.Event) { s.poster.Post(e) }

// probe asks for the version of the API server while the operator is idle; see
// [vitals.Vitals.Probe].
func (s *server) probe(ctx context.Context) {
	client := s.client.WithBackoffs(nil).Reserved(forProbes)
	s.vitals.Probe(ctx, func(ctx context.Context) {
		_, _ = client.Version(ctx) // the client's observer notes any response
	})
}
