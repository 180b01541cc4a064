package engine

import (
	"context"
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// Pause makes the operator handle nothing until everybody who asked for a pause
// has asked for its end: streams are closed, daemons and timers stop, what is
// delayed stays so. Handlers that are running finish. What happens meanwhile to
// objects is found out afterwards.
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

// Resume ends the pause that somebody asked for.
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
	s.Log.Info("Handling goes on after the pause.")
	select {
	case s.resumed <- struct{}{}:
	default:
	}
}

// Pauses are the reasons for which nothing is handled now.
func (s *server) Pauses() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Values(s.pauses))
}

// followResuming takes up the work again after each pause, until the context is
// done.
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

// pause ends the streams, which nobody waits for, and what runs beside the
// objects.
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

// isNow reports whether an object may have a turn now, and for what. In a pause,
// and after it until the object is listed again, it may not: the state that is
// known of it is from before the pause, and another operator may have handled the
// object since.
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

// fresh returns the entry without an event from before the last pause: the state
// that it tells is listed again. Deletions stay.
func (r *resource) fresh(e entry) entry {
	if e.event != nil && e.since != r.pauses.Load() && !e.event.Gone() {
		e.event = nil
	}
	return e
}

// isUnlisted reports whether an object was not listed since the last pause.
func (r *resource) isUnlisted(key string) bool {
	m := r.memories[key]
	return m != nil && len(r.unlisted) > 0 && (r.unlisted[""] || r.unlisted[m.Namespace])
}

// miss notes a turn that has to wait for the end of a pause and for the list after
// it. Events are not noted: whatever they tell is listed again.
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

// join adds the reasons of another entry, except for its event.
func (e entry) join(other entry) entry {
	e.wake, e.alarm, e.hurry = e.wake.Join(other.wake), e.alarm || other.alarm, e.hurry || other.hurry
	return e
}

// catchUp gives the objects of a namespace the turns that they missed. It is
// called when they are listed, by a stream that began after so many pauses.
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
		r.put(key, e) // those of other namespaces are missed again
	}
}

// lead makes the operator work because it was elected, as soon as its indices are
// filled.
func (s *server) lead(term, work context.Context) {
	s.mu.Lock()
	s.standby = false
	s.mu.Unlock()
	s.openGate(term, work)
}

// standDown makes the operator stop working at once because another one may
// have been elected, and waits until nothing of it runs anymore. Then it only
// fills its indices again. Nothing is remembered: when it works again, it begins
// anew.
func (s *server) standDown(work context.Context) {
	s.mu.Lock()
	s.standby = true
	if len(s.Indices) > 0 {
		s.gate.Close(discovery) // they are filled anew
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
	if len(s.leaving) == 0 { // or else the last of them does it
		s.arrange(work)
	}
	s.mu.Unlock()
	late := time.AfterFunc(reminding, func() {
		s.Log.Warn("The lease is lost, but some handlers do not end: this replica is no candidate until they do.")
	})
	defer late.Stop()
	select {
	case <-s.retiring.Empty():
	case <-s.stopped: // with what does not end left behind
	}
}

// begin makes all handlers work that were waiting for the gate or for the
// election: resources that were followed only for their indices are listed again
// for their other handlers.
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

// widen ends the streams that only fill indices, and then begins them anew for
// all handlers. Index functions may take their time, and ask for what the server
// knows, so they are not waited for here.
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
			return // it is closed by whoever has taken it away
		}
		r.widening = false
		r.indexOnly.Store(false)
		clear(r.streams)
		s.follow(work, r)
	})
}

// working tells whether handlers may be called, pauses aside: indices are
// filled, and nobody else is elected.
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
