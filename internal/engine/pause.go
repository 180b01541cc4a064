package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/execute"
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
	for _, r := range s.resources {
		r.pause()
	}
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
	for _, r := range s.resources {
		if r.kind.Daemons != nil {
			r.kind.Daemons.Resume()
		}
		s.follow(work, r)
	}
}

// pause ends the watches and stops daemons and timers, without waiting for either. The
// caller must hold server.mu.
func (r *resource) pause() {
	r.mu.Lock()
	r.pauses.Add(1)
	r.unlisted = maps.Clone(r.places)
	r.mu.Unlock()
	for namespace, end := range r.streams {
		delete(r.streams, namespace)
		r.ending.Go(end)
	}
	if r.kind.Daemons != nil {
		r.kind.Daemons.Pause()
	}
}

// isNow reports whether an object may have a turn now, and returns the entry for it.
// It may not during a pause, nor after a pause until the object is listed again: the
// cached state is stale, and another operator may have handled the object since.
func (r *resource) isNow(key string, e entry) (_ entry, now bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e = r.fresh(e)
	switch {
	case r.paused.Load():
		r.miss(key, e)
		return e, false
	case e.event != nil: // a state from after the pause
		before := r.missed[key]
		delete(r.missed, key)
		return e.join(before), true
	case r.isUnlisted(key):
		r.miss(key, e)
		return e, false
	}
	return e, e.wake != nil || e.alarm || e.hurry
}

// fresh removes an event from before the last pause from the entry: the next list has
// the newer state. Deletions stay.
func (r *resource) fresh(e entry) entry {
	if e.event != nil && e.since != r.pauses.Load() && !e.event.Gone() {
		e.event = nil
	}
	return e
}

// isUnlisted reports whether an object was not listed since the last pause. The caller
// must hold r.mu.
func (r *resource) isUnlisted(key string) bool {
	m := r.memories[key]
	return m != nil && len(r.unlisted) > 0 && (r.unlisted[""] || r.unlisted[m.Namespace])
}

// miss keeps a turn that must wait for the end of a pause and for the list after it.
// Its event is dropped, because the list has the newer state. The caller must hold r.mu.
func (r *resource) miss(key string, e entry) {
	if e.wake == nil && !e.alarm && !e.hurry {
		return
	}
	if r.missed == nil {
		r.missed = map[string]entry{}
	}
	e.event = nil
	r.missed[key] = e.join(r.missed[key])
}

// join returns e with the reasons of the other entry added, except for its event.
func (e entry) join(other entry) entry {
	e.wake, e.alarm, e.hurry = e.wake.Join(other.wake), e.alarm || other.alarm, e.hurry || other.hurry
	return e
}

// catchUp queues the turns that the objects of a namespace missed during a pause. A
// watch calls it after its list. since is the number of pauses before the watch
// started; the call has no effect if there was another pause.
func (r *resource) catchUp(namespace string, since uint32) {
	var missed map[string]entry
	r.mu.Lock()
	if since == r.pauses.Load() {
		delete(r.unlisted, namespace)
		missed = r.missed
		r.missed = nil
	}
	r.mu.Unlock()
	for key, e := range missed {
		r.put(key, e) // isNow misses those of other namespaces again
	}
}

// lead starts the work of a new leader, as soon as the indices are filled. It waits for
// that until the term ends.
func (s *server) lead(term, work context.Context) {
	s.mu.Lock()
	s.standby = false
	s.mu.Unlock()
	s.openGate(term, work)
}

// standDown stops all work at once after the loss of the lease, because another replica
// may be the leader. It returns when all handlers and daemons have ended. From then on,
// the replica only keeps its indices filled. The memories of objects are dropped: a
// later term starts like a new process.
func (s *server) standDown(work context.Context) {
	s.mu.Lock()
	s.standby = true
	if len(s.Indices) > 0 {
		s.gate.Close(resources) // the new resources fill them again
	}
	for gvr, r := range s.resources {
		delete(s.resources, gvr)
		r.cancel(execute.ErrStopping)
		if r.kind.Daemons != nil {
			r.kind.Daemons.Pause()
		}
		s.retire(work, r)
	}
	s.served.Store(new([]*resource))
	if len(s.leaving) == 0 { // otherwise the last retiring resource calls arrange
		s.arrange(work)
	}
	s.mu.Unlock()
	late := time.AfterFunc(reminding, func() {
		s.Log.Warn("The lease is lost, but some handlers have not returned; this replica is not a candidate until they do.")
	})
	defer late.Stop()
	select {
	case <-s.retiring.Empty():
	case <-s.stopped: // the operator stopped and abandoned the rest
	}
}

// begin starts all handlers that were waiting for the index barrier or for the lease.
// Resources that were watched only for their indices are listed again for their other
// handlers. The caller must hold s.mu.
func (s *server) begin(work context.Context) {
	if !s.working() {
		return
	}
	for _, r := range s.resources {
		switch {
		case r.widening:
		case r.indexOnly.Load() && r.hasOthers():
			s.widen(work, r)
		default:
			r.indexOnly.Store(false)
			s.follow(work, r)
		}
	}
}

// widen ends the watches that only fill indices, and then starts them again for all
// handlers. It does not wait: index functions may be slow, and may call methods that
// need s.mu. The caller must hold s.mu.
func (s *server) widen(work context.Context, r *resource) {
	r.widening = true
	ending := slices.Collect(maps.Values(r.streams))
	s.retiring.Go(func() {
		for _, end := range ending {
			end()
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.resources[r.kind.Resource.GVR()] != r {
			return // it was retired meanwhile, and retire or stop closes it
		}
		r.widening = false
		r.indexOnly.Store(false)
		clear(r.streams)
		s.follow(work, r)
	})
}

// working reports whether handlers may be called: the indices are filled, and this
// replica is the leader or needs no election. Pauses do not count. The caller must hold
// s.mu.
func (s *server) working() bool {
	if s.standby {
		return false
	}
	select {
	case <-s.gate.Open():
		return true
	default:
		return false
	}
}
