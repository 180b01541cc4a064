package controller

import "maps"

// Pause ends the watches and stops daemons and timers, without waiting for either.
// Running handlers finish.
func (c *Controller) Pause() {
	c.mu.Lock()
	c.pauses.Add(1)
	c.unlisted = maps.Clone(c.places)
	c.mu.Unlock()
	for namespace, end := range c.streams {
		delete(c.streams, namespace)
		c.config.Go(end)
	}
	c.scope = nil
	if c.processor.Daemons != nil {
		c.processor.Daemons.Pause()
	}
}

// Resume lets daemons and timers start again after a pause. [Controller.Follow] starts
// the watches.
func (c *Controller) Resume() {
	if c.processor.Daemons != nil {
		c.processor.Daemons.Resume()
	}
}

// isNow reports whether an object may have a turn now, and returns the entry for it.
// It may not during a pause, nor after a pause until the object is listed again: the
// cached state is stale, and another operator may have handled the object since.
func (c *Controller) isNow(key string, e entry) (_ entry, now bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e = c.fresh(e)
	switch {
	case c.config.Paused():
		c.miss(key, e)
		return e, false
	case e.event != nil: // a state from after the pause
		before := c.missed[e.namespace][key]
		delete(c.missed[e.namespace], key)
		return e.join(before), true
	case c.isUnlisted(key):
		c.miss(key, e)
		return e, false
	}
	return e, e.wake != nil || e.alarm || e.hurry
}

// fresh removes an event from before the last pause from the entry: the next list has
// the newer state. Deletions stay.
func (c *Controller) fresh(e entry) entry {
	if e.event != nil && e.since != c.pauses.Load() && !e.event.Gone() {
		e.event = nil
	}
	return e
}

// isUnlisted reports whether an object was not listed since the last pause. The caller
// must hold c.mu.
func (c *Controller) isUnlisted(key string) bool {
	m := c.memories[key]
	return m != nil && len(c.unlisted) > 0 && (c.unlisted[""] || c.unlisted[m.Namespace()])
}

// miss keeps a turn that must wait for the end of a pause and for the list after it.
// Its event is dropped, because the list has the newer state. The caller must hold c.mu.
func (c *Controller) miss(key string, e entry) {
	if e.wake == nil && !e.alarm && !e.hurry {
		return
	}
	if c.missed == nil {
		c.missed = missed{}
	}
	namespace := e.namespace
	if m := c.memories[key]; m != nil {
		namespace = m.Namespace()
	}
	if c.missed[namespace] == nil {
		c.missed[namespace] = map[string]entry{}
	}
	e.event = nil
	c.missed[namespace][key] = e.join(c.missed[namespace][key])
}

// join returns e with the reasons of the other entry added, except for its event.
func (e entry) join(other entry) entry {
	e.wake, e.alarm, e.hurry = e.wake.Join(other.wake), e.alarm || other.alarm, e.hurry || other.hurry
	return e
}

// catchUp queues the turns that the objects of the namespaces missed during a pause. A
// watch calls it after its list. since is the number of pauses before the watch
// started; the call has no effect if there was another pause.
func (c *Controller) catchUp(namespaces []string, since uint32) {
	c.mu.Lock()
	if since != c.pauses.Load() {
		c.mu.Unlock()
		return
	}
	for _, namespace := range namespaces {
		delete(c.unlisted, namespace)
	}
	turns := c.missed.take(namespaces)
	c.mu.Unlock()
	for key, e := range turns {
		c.put(key, e)
	}
}
