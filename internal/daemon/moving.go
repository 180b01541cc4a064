package daemon

import (
	"context"
	"maps"
	"slices"
)

// register adds the object to those that Pause and Exit stop.
func (s *Set) register(o *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[o] = struct{}{}
}

func (s *Set) unregister(o *Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.objects, o)
}

func (s *Set) snapshot() []*Object {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Collect(maps.Keys(s.objects))
}

// moves counts a task that is being called or written for.
func (s *Set) moves() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving++
}

// rests counts a task that waits again, has ended, or is abandoned.
func (s *Set) rests() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.moving--
	if s.moving == 0 && s.quiet != nil {
		close(s.quiet)
		s.quiet = nil
	}
}

// Moving returns the number of tasks that are being called or written for.
func (s *Set) Moving() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.moving
}

// Tally returns the number of running daemons, and of timers that wait for their next
// call.
func (s *Set) Tally() (daemons, timers int) {
	for _, o := range s.snapshot() {
		o.mu.Lock()
		for _, t := range o.tasks {
			switch {
			case !t.spec.Timer && t.run != nil:
				daemons++
			case t.spec.Timer && t.run == nil:
				timers++
			}
		}
		o.mu.Unlock()
	}
	return daemons, timers
}

// Settle waits until no task is being called or written for. It returns the cause of
// ctx if that ends first.
func (s *Set) Settle(ctx context.Context) error {
	for {
		s.mu.Lock()
		if s.moving == 0 {
			s.mu.Unlock()
			return nil
		}
		if s.quiet == nil {
			s.quiet = make(chan struct{})
		}
		quiet := s.quiet
		s.mu.Unlock()
		select {
		case <-quiet:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
