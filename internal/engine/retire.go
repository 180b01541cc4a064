package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// retire stops a resource that is gone or must be restarted. It does not wait. Its
// handlers and daemons have the same grace periods as in a shutdown. Only after that
// may another resource serve the same objects, for example in another version. This
// keeps two processors from handling an object at the same time, and the removal from
// indices comes before the new entries. The caller must hold s.mu.
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
				s.Log.Warn("A handler of a resource that is no longer served did not stop in time and was abandoned.",
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

// succeed starts the resources that waited for the end of r, and removes r from the
// index barrier and the metrics unless a successor has the same name.
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
