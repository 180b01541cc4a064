package queue

import "sync"

// Slots is a semaphore for work of many groups, such as namespaces. While callers wait, the
// groups take turns, whatever the number of callers of each group. A group can have three
// quarters of the slots. If there are two or more, at least one is left for other groups. It
// is safe for concurrent use.
type Slots struct {
	size, most int

	mu      sync.Mutex
	used    int
	shares  map[string]int // the slots of each group that has some
	waiting lines[*waiter]
}

// waiter is a caller that waits for a slot.
type waiter struct {
	group string
	ready chan struct{} // closed when the caller has a slot
}

// NewSlots returns n slots, but at least one.
func NewSlots(n int) *Slots {
	n = max(n, 1)
	return &Slots{size: n, most: max(1, min(n-1, n-n/4)), shares: map[string]int{}}
}

// Acquire waits for a slot. If one of the channels is closed first, ok is false. They may be
// nil. The caller must call release once. It must not acquire another slot before, because
// all slots may be held by callers that do.
func (s *Slots) Acquire(group string, done, stopping <-chan struct{}) (release func(), ok bool) {
	w := &waiter{group, make(chan struct{})}
	s.mu.Lock()
	s.waiting.push(group, w)
	s.serve()
	s.mu.Unlock()
	select {
	case <-w.ready: // even if the others are closed
		return func() { s.release(group) }, true
	default:
	}
	select {
	case <-w.ready:
		return func() { s.release(group) }, true
	case <-done:
	case <-stopping:
	}
	s.mu.Lock()
	left := s.waiting.remove(group, func(other *waiter) bool { return other == w })
	s.mu.Unlock()
	if !left { // it got a slot meanwhile
		s.release(group)
	}
	return nil, false
}

func (s *Slots) release(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.used--
	if s.shares[group]--; s.shares[group] == 0 {
		delete(s.shares, group)
	}
	s.serve()
}

// serve gives free slots to callers that wait. The lock must be held.
func (s *Slots) serve() {
	for s.used < s.size {
		w, ok := s.waiting.pop(func(w *waiter) bool { return s.shares[w.group] < s.most })
		if !ok {
			return
		}
		s.used++
		s.shares[w.group]++
		close(w.ready)
	}
}
