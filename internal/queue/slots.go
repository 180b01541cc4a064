package queue

import "sync"

// Slots is a semaphore for work of many groups, such as namespaces. While callers wait, the
// groups take turns, whatever the number of callers of each group. A group can have three
// quarters of the slots. If there are two or more, at least one is left for other groups. A
// group may have parts; see [Slots.AcquireIn]. Slots is safe for concurrent use.
type Slots struct {
	size, most int

	mu      sync.Mutex
	used    int
	shares  map[string]int // the slots of each group that has some
	waiting lines[*waiter]
	divided map[string]*division // the groups whose parts have or await slots
}

// waiter is a caller that waits for a slot.
type waiter struct {
	group string
	ready chan struct{} // closed when the caller has a slot
}

// division is a group with parts.
type division struct {
	slots   *Slots // as many as the group can have, for its parts
	callers int    // that have or await a slot
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

// AcquireIn is like [Slots.Acquire] for a part of a group, such as a namespace among the
// requests of a client. The parts share the slots that the group can have, as groups share
// all slots. So parts that a client invents only divide its share.
//
// A caller first gets a slot of its part, and then one of the group. So the callers of a group
// that wait among those of other groups are never more than its share.
func (s *Slots) AcquireIn(group, part string, done, stopping <-chan struct{}) (release func(), ok bool) {
	d := s.enter(group)
	inner, ok := d.slots.Acquire(part, done, stopping)
	if !ok {
		s.leave(group, d)
		return nil, false
	}
	outer, ok := s.Acquire(group, done, stopping)
	if !ok {
		inner()
		s.leave(group, d)
		return nil, false
	}
	return func() {
		outer()
		inner()
		s.leave(group, d)
	}, true
}

// enter counts another caller of a group with parts.
func (s *Slots) enter(group string) *division {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.divided[group]
	if d == nil {
		if s.divided == nil {
			s.divided = map[string]*division{}
		}
		d = &division{slots: NewSlots(s.most)}
		s.divided[group] = d
	}
	d.callers++
	return d
}

func (s *Slots) leave(group string, d *division) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if d.callers--; d.callers == 0 {
		delete(s.divided, group)
	}
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
