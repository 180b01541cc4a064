package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/kube"
)

// followNamespaces watches the namespaces that match the patterns, until the context is
// done. For plain names, it only warns about those that do not exist.
func (s *server) followNamespaces(ctx, work context.Context) {
	if names, fixed := s.Namespaces.Fixed(); fixed {
		if !s.ScanningDisabled {
			s.tellOfMissing(ctx, names)
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

// tellOfMissing logs a warning for each namespace that does not exist. The name may be
// mistyped, and API servers return an empty list for such a namespace, not an error.
func (s *server) tellOfMissing(ctx context.Context, names []string) {
	client := s.client.WithBackoffs(nil) // other errors show up in the watches
	for _, name := range names {
		_, err := client.Get(ctx, kube.Target{Info: discovery.NamespaceInfo(), Name: name})
		if apierrors.IsNotFound(err) {
			s.Log.Warn(fmt.Sprintf("The namespace '%s' does not exist. Its objects will be handled when it is created.", name))
		}
	}
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
}
