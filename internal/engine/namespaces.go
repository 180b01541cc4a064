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
		Serve:    func(names []string, exist bool) { s.serveNamespaces(work, names, exist) },
		Complete: func() { s.barrier.Synced(patterns) },
	}
	following.Run(ctx)
}

// serveNamespaces starts or stops serving namespaces in all controllers.
func (s *server) serveNamespaces(work context.Context, names []string, exist bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if exist {
			s.namespaces[name] = true
		} else {
			delete(s.namespaces, name)
		}
	}
	s.move()
	for _, c := range s.controllers {
		s.follow(work, c)
	}
	s.followChildren(work)
}
