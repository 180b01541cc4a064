package engine

import (
	"context"
	"maps"
	"slices"
)

// Pause stops the handling of objects until Resume is called for every requester (who).
// It closes the watches and stops daemons and timers. Running handlers finish, and
// delayed handlers stay delayed. Changes during the pause are detected afterwards,
// when the objects are listed again.
func (s *server) Pause(who, why string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := len(s.pauses) == 0
	s.pauses[who] = why
	if !first {
		return
	}
	s.paused.Store(true)
	s.Log.Info("Handling is paused.", "why", why)
	for _, c := range s.controllers {
		c.Pause()
	}
	s.followChildren(context.Background()) // it only ends watches
}

// Resume ends the pause of one requester. It does nothing if there is no such pause.
// When no pause is left, followResuming restarts the watches.
func (s *server) Resume(who string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if _, paused := s.pauses[who]; !paused {
		return
	}
	delete(s.pauses, who)
	if len(s.pauses) > 0 {
		return
	}
	s.paused.Store(false)
	select {
	case <-s.stopping:
		return
	default:
	}
	s.Log.Info("Handling is resumed.")
	select {
	case s.resumed <- struct{}{}:
	default:
	}
}

// Pauses returns the sorted reasons of the current pauses.
func (s *server) Pauses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.pauses))
}

// followResuming restarts the watches and daemons after each pause, until the context
// is done.
func (s *server) followResuming(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.resumed:
			s.takeUp(work)
		}
	}
}

func (s *server) takeUp(work context.Context) {
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
