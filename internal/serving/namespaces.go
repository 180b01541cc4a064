package serving

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/pause"
)

// firstNamespaces returns the namespaces that are served before any of them is
// discovered. "" means all.
func firstNamespaces(selected discovery.Namespaces) map[string]bool {
	first := map[string]bool{}
	if len(selected) == 0 {
		first[""] = true
	}
	if names, fixed := selected.Fixed(); fixed {
		for _, name := range names {
			first[name] = true
		}
	}
	return first
}

// FollowNamespaces watches the namespaces that match the patterns, until the context is
// done. For plain names, it only warns about those that do not exist.
func (s *Controllers) FollowNamespaces(ctx, work context.Context) {
	c := s.Shared
	if names, fixed := c.Namespaces.Fixed(); fixed {
		if !s.ScanningDisabled {
			discovery.WarnOfMissing(ctx, c.Client, names, c.Log)
		}
		return
	}
	following := &discovery.Following{
		Client: c.Client, Stream: c.Stream, Patterns: c.Namespaces, Log: c.Log,
		Seen:     s.seeNamespace,
		Serve:    func(names []string, exist bool) { s.serveNamespaces(work, names, exist) },
		Complete: func() { c.Barrier.Synced(patterns) },
	}
	following.Run(ctx)
}

// seeNamespace notes whether a namespace is paused.
func (s *Controllers) seeNamespace(body *object.Body) {
	var prefixes []string
	if s.Name != "" {
		prefixes = append(prefixes, s.Name)
	}
	now := pause.Of(body.Annotations(), prefixes, time.Now())
	if !s.Shared.Spaces.Set(body.Name, now) {
		return
	}
	if now != nil {
		s.Shared.Log.Info("The namespace is paused.", "namespace", body.Name, "annotation", now.Key, "reason", loglimit.Cut(now.Reason))
	} else {
		s.Shared.Log.Info("The pause of the namespace has ended.", "namespace", body.Name)
	}
	for _, c := range *s.served.Load() {
		c.Revisit(body.Name)
	}
}

// serveNamespaces starts or stops serving namespaces in all controllers.
func (s *Controllers) serveNamespaces(work context.Context, names []string, exist bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, name := range names {
		if exist {
			s.namespaces[name] = true
			if s.waits(name) {
				s.Shared.Barrier.Expect(peeringIn(name))
			}
		} else {
			delete(s.namespaces, name)
			s.Shared.Barrier.Drop(peeringIn(name))
		}
	}
	s.Moved()
	s.followAll(work)
	if !exist { // their objects are gone; if a namespace is created again, it is seen before it is served
		for _, name := range names {
			s.Shared.Spaces.Set(name, nil)
		}
	}
}

// Admit starts or stops serving a namespace that is withheld. It may be called for namespaces
// that do not exist, and it does nothing if nothing changes.
func (s *Controllers) Admit(work context.Context, namespace string, served bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.admitted[namespace] == served {
		return
	}
	if served {
		s.admitted[namespace] = true
	} else {
		delete(s.admitted, namespace)
	}
	s.followAll(work)
	if served {
		s.Shared.Barrier.Drop(peeringIn(namespace)) // the barrier expects its indexed resources now
	}
}

// Skip lets the index barrier open without a namespace that is withheld: it may
// never be admitted.
func (s *Controllers) Skip(namespace string) { s.Shared.Barrier.Drop(peeringIn(namespace)) }

// waits reports whether a namespace is withheld and was not admitted. The caller must hold
// s.mu.
func (s *Controllers) waits(namespace string) bool {
	return s.Withheld != nil && s.Withheld(namespace) && !s.admitted[namespace]
}

// open returns the namespaces that may be served now. The caller must hold s.mu.
func (s *Controllers) open() map[string]bool {
	if s.Withheld == nil {
		return s.namespaces
	}
	open := make(map[string]bool, len(s.namespaces))
	for name := range s.namespaces {
		if !s.waits(name) {
			open[name] = true
		}
	}
	return open
}
