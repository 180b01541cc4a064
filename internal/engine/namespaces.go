package engine

import (
	"context"

	"gopf.dev/gopf/internal/discovery"
)

// followNamespaces watches the namespaces that match the patterns, until the context is
// done. For plain names, it only warns about those that do not exist.
func (s *server) followNamespaces(ctx, work context.Context) {
	if names, fixed := s.Namespaces.Fixed(); fixed {
		if !s.ScanningDisabled {
			discovery.WarnOfMissing(ctx, s.client, names, s.Log)
		}
		return
	}
	following := &discovery.Following{
		Client: s.client, Stream: s.Stream, Patterns: s.Namespaces, Log: s.Log,
		Serve:    func(name string, exists bool) { s.serveNamespace(work, name, exists) },
		Complete: func() { s.barrier.Synced(patterns) },
	}
	following.Run(ctx)
}

// serveNamespace starts or stops serving a namespace in all controllers.
func (s *server) serveNamespace(work context.Context, name string, exists bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if exists {
		s.namespaces[name] = true
	} else {
		delete(s.namespaces, name)
	}
	s.move()
	for _, c := range s.controllers {
		s.follow(work, c)
	}
	s.followChildren(work)
}
