package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// retire ends a resource that is not served anymore, or is to be served anew.
// Its handlers have the usual time to return, and its daemons theirs. Only then
// the same objects are served again, maybe in another version: each has one
// actor, and what the former one takes out of indices does not get lost.
func (s *server) retire(work context.Context, r *resource) {
	s.leaving[r.name()]++
	s.retiring.Go(func() {
		late := time.AfterFunc(s.ExitTimeout, func() { r.cancel(execute.ErrStopping) })
		defer late.Stop()
		closed := make(chan struct{})
		go func() { defer close(closed); r.close() }()
		limit := time.NewTimer(s.ExitTimeout + s.Process.WriteGrace + patience)
		defer limit.Stop()
		select {
		case <-closed:
		case <-limit.C:
			for _, name := range r.running() {
				s.Log.Warn("A handler of a resource that is not served anymore does not stop, and is not waited for.",
					"resource", r.kind.Resource.String(), "name", name)
			}
		}
		r.abandon()
		if r.kind.Daemons != nil {
			last, end := context.WithTimeout(context.Background(), r.kind.Daemons.Patience()+s.ExitTimeout+patience)
			r.kind.Daemons.Exit(last)
			end()
		}
		s.succeed(work, r)
		<-closed
	})
}

// succeed serves what has waited for the end of a resource.
func (s *server) succeed(work context.Context, r *resource) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.leaving[r.name()]--; s.leaving[r.name()] == 0 {
		delete(s.leaving, r.name())
	}
	s.arrange(work)
	current := map[string]bool{}
	named := false
	for _, other := range s.resources {
		named = named || other.name() == r.name()
		for place := range other.places {
			current[other.source(place)] = true
		}
	}
	for place := range r.places {
		if source := r.source(place); !current[source] {
			s.gate.Drop(source)
		}
	}
	if !named && !s.ended {
		s.vitals.metrics.Forget(r.name())
	}
}
