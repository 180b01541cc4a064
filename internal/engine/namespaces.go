package engine

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/observe"
)

// followNamespaces keeps up with the namespaces that match the patterns, until
// the context is done. Plain names need not be followed.
func (s *server) followNamespaces(ctx, work context.Context) {
	if names, fixed := s.Namespaces.Fixed(); fixed {
		if !s.ScanningDisabled {
			s.tellOfMissing(ctx, names)
		}
		return
	}
	following := &observe.Following{
		Client: s.client, Stream: s.Stream, Patterns: s.Namespaces, Log: s.Log,
		Serve:    func(name string, exists bool) { s.serveNamespace(work, name, exists) },
		Complete: func() { s.gate.Synced(patterns) },
	}
	following.Run(ctx)
}

// tellOfMissing tells of namespaces that do not exist: servers list nothing in them
// without a word, and a name may be mistyped.
func (s *server) tellOfMissing(ctx context.Context, names []string) {
	client := s.client.WithBackoffs(nil) // others find out what else is wrong
	for _, name := range names {
		_, err := client.Get(ctx, kube.Target{Info: observe.NamespaceInfo(), Name: name})
		if apierrors.IsNotFound(err) {
			s.Log.Warn(fmt.Sprintf("The namespace '%s' does not exist. What is created in it will be handled once it does.", name))
		}
	}
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
