package serving

import "context"

// Pause ends the watches and stops daemons and timers, and does not wait for them.
// Running handlers finish.
func (s *Controllers) Pause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused.Store(true)
	for _, c := range s.controllers {
		c.Pause()
	}
	s.followChildren(context.Background()) // it only ends watches
}

// Unpause allows watches again. The caller must call Resume afterwards, which starts them.
func (s *Controllers) Unpause() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.paused.Store(false)
}

// Resume restarts the watches and daemons after a pause. It does nothing during the next
// pause.
func (s *Controllers) Resume(work context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.paused.Load() {
		return
	}
	for _, c := range s.controllers {
		c.Resume()
		s.follow(work, c)
	}
	s.followChildren(work)
}

// Paused reports whether the controllers are paused.
func (s *Controllers) Paused() bool { return s.paused.Load() }
