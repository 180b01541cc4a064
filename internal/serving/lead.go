package serving

import (
	"context"

	"gopf.dev/gopf/internal/controller"
)

// Lead starts the work of a new leader, as soon as the indices are filled. It waits for
// that until the term ends.
func (s *Controllers) Lead(term, work context.Context) {
	s.mu.Lock()
	s.standby = false
	s.mu.Unlock()
	s.OpenBarrier(term, work)
}

// StandDown cancels all handlers and daemons after the loss of the lease, because another
// replica may be the leader. It does not wait for them; see [Controllers.Retired]. From
// then on, the replica only keeps its indices filled. The memories of objects are dropped:
// a later term starts like a new process.
func (s *Controllers) StandDown(work context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.standby = true
	if len(s.Shared.Indices) > 0 {
		s.Shared.Barrier.Close(resources) // the new controllers fill them again
	}
	for gvr, c := range s.controllers {
		delete(s.controllers, gvr)
		c.Cancel()
		s.retire(work, c)
	}
	s.served.Store(new([]*controller.Controller))
	if len(s.leaving) == 0 { // otherwise the last retiring controller calls arrange
		s.arrange(work)
	}
}

// Standby reports whether another replica is the leader.
func (s *Controllers) Standby() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.standby
}
