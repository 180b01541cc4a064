package engine

import (
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/execute"
)

// stop ends the work: no more of it is begun; what is running may finish; what
// does not in time is cancelled; what does not heed that either is left behind.
// Daemons and timers have the time that they were declared with.
func (s *server) stop(cancel context.CancelCauseFunc) {
	close(s.stopping)
	s.mu.Lock()
	s.ended = true
	resources := s.resources // nobody else begins or pauses anything of them now
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
		case <-last.Done(): // at the end of this function at the latest
		}
	}()
	leave := time.NewTimer(limit + time.Second) // daemons that are abandoned at the limit say so
	defer leave.Stop()
	select {
	case <-done:
	case <-leave.C:
		for _, r := range resources {
			for _, name := range r.running() {
				s.Log.Warn("A handler does not stop and is left behind.", "resource", r.kind.Resource.String(), "name", name)
			}
		}
	}
}
