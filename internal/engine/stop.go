package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/execute"
)

// stop stops all resources. New turns do not start, and running handlers may finish
// within ExitTimeout. Then their contexts are canceled. Handlers that still do not
// return are abandoned with a warning. Daemons and timers have the grace periods of
// their declarations.
func (s *server) stop(cancel context.CancelCauseFunc) {
	close(s.stopping)
	s.mu.Lock()
	s.ended = true
	resources := s.resources // from now on, no other goroutine starts or pauses them
	s.resources = map[schema.GroupVersionResource]*resource{}
	s.mu.Unlock()

	limit := s.ExitTimeout + s.Process.WriteGrace + patience
	for _, r := range resources {
		if r.kind.Daemons != nil {
			limit = max(limit, r.kind.Daemons.Patience()+s.ExitTimeout+patience)
		}
	}
	last, end := context.WithTimeout(context.Background(), limit)
	defer end()
	exit := time.AfterFunc(s.ExitTimeout, func() { cancel(execute.ErrStopping) })
	defer exit.Stop()

	var closing sync.WaitGroup
	closing.Go(func() { <-s.retiring.Empty() })
	for _, r := range resources {
		closing.Go(r.close)
		if r.kind.Daemons != nil {
			closing.Go(func() { r.kind.Daemons.Exit(last) })
		}
	}
	done := make(chan struct{})
	go func() { closing.Wait(); close(done) }()
	go func() {
		select {
		case <-s.evicted:
			cancel(execute.ErrStopping)
			end()
		case <-last.Done(): // when this function returns, at the latest
		}
	}()
	leave := time.NewTimer(limit + time.Second) // at the limit, daemon sets log which daemons they abandon
	defer leave.Stop()
	select {
	case <-done:
	case <-leave.C:
		for _, r := range resources {
			for _, name := range r.running() {
				s.Log.Warn("A handler did not stop in time and was abandoned.", "resource", r.kind.Resource.String(), "name", name)
			}
		}
	}
}
