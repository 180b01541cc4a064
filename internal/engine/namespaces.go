package engine

import (
	"context"

	"gopf.dev/gopf/internal/observe"
)

// followNamespaces keeps up with the namespaces that match the patterns, until
// the context is done. Plain names need not be followed.
func (s *server) followNamespaces(ctx, work context.Context) {
	if _, fixed := s.Namespaces.Fixed(); fixed {
		return
	}
	following := &observe.Following{
		Client: s.client, Stream: s.Stream, Patterns: s.Namespaces, Log: s.Log,
		Serve:    func(name string, exists bool) { s.serveNamespace(work, name, exists) },
		Complete: func() { s.gate.Synced(patterns) },
	}
	following.Run(ctx)
}

// serveNamespace begins or ends to serve a namespace.
func (s *server) serveNamespace(work context.Context, name string, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if exists {
		s.namespaces[name] = true
	} else {
		delete(s.namespaces, name)
	}
	s.move()
	for _, r := range s.resources {
		s.follow(work, r)
	}
}
