package controller

import (
	"context"
	"iter"
	"maps"
	"slices"
	"sync"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/stream"
)

// Follow serves the namespaces: it starts the missing watches and ends those of other
// namespaces. During a pause or while the watches are being restarted, it starts none;
// neither does it while [Controller.Undecided]. The watches run until they are ended, or
// until the context is done.
func (c *Controller) Follow(ctx context.Context, namespaces map[string]bool) {
	c.settle(namespaces)
	if c.config.Paused() || c.widening || c.reaching {
		return
	}
	switch {
	case c.reach == cluster:
		if c.streams[""] == nil {
			c.streams[""] = c.startWide(ctx)
		}
		return
	case c.Undecided():
		c.config.Ask()
		return
	}
	for namespace := range c.places {
		if c.streams[namespace] == nil {
			c.streams[namespace] = c.start(ctx, namespace, nil)
		}
	}
}

// Widening reports whether the watches are being restarted; see [Controller.Widen].
func (c *Controller) Widening() bool { return c.widening }

// Widen makes the controller serve all its handlers rather than only its index
// functions. If the watches were for indices only and there are other handlers, all
// objects must be listed again: the caller must then call end, which waits until the
// watches have ended, and after that [Controller.Widened]. Otherwise, end is nil.
//
// Widen itself does not wait: index functions may be slow.
func (c *Controller) Widen() (end func()) {
	if !c.indexOnly.Load() || !c.hasOthers() {
		c.indexOnly.Store(false)
		return nil
	}
	c.widening = true
	ending := slices.Collect(maps.Values(c.streams))
	return func() {
		for _, end := range ending {
			end()
		}
	}
}

// Widened completes [Controller.Widen] after the watches have ended.
// [Controller.Follow] starts them again for all handlers.
func (c *Controller) Widened() {
	c.widening = false
	c.indexOnly.Store(false)
	c.indexed.Clear()
	c.dropStreams()
}

// settle sets the served namespaces. It ends the watches of the others, and drops their
// objects. Cluster-scoped resources ignore the argument. It starts no watches; see
// [Controller.start].
func (c *Controller) settle(namespaces map[string]bool) {
	if !c.processor.Resource.Namespaced {
		namespaces = map[string]bool{"": true}
	}
	for namespace := range c.places {
		if namespaces[namespace] {
			continue
		}
		end := c.streams[namespace]
		delete(c.places, namespace)
		delete(c.streams, namespace)
		if c.scope != nil {
			c.scope.Remove(namespace)
		}
		c.config.Barrier.Drop(c.source(namespace))
		c.setServed(namespace, false)
		c.config.Go(func() {
			if end != nil { // nil during a pause, or if one watch serves all namespaces
				end()
			}
			c.forgetNamespace(namespace)
		})
	}
	for namespace := range namespaces {
		if c.places[namespace] {
			continue
		}
		c.places[namespace] = true
		if c.indexOnly.Load() {
			c.config.Barrier.Expect(c.source(namespace))
		}
		c.setServed(namespace, true)
		if c.scope != nil {
			c.scope.Add(namespace)
		}
	}
}

// start starts the watch of a namespace, or of those in the scope. end stops it and waits
// for its goroutine; it may be called twice.
func (c *Controller) start(ctx context.Context, namespace string, scope *stream.Scope) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	config := c.config.Stream
	config.Info, config.Namespace, config.Log = c.processor.Resource, namespace, c.config.Log
	config.Scope, config.Share = scope, len(c.places) > ownConnections && scope == nil
	config.Known = func() iter.Seq[object.Identity] { return c.known(namespace) }
	pulse, over := c.config.Vitals.Follow(&config, c.counts)
	if scope != nil {
		config.Status = c.noteRefusal(config.Status)
	}
	forget := func() {}
	if c.mayBeMissing(namespace) {
		forget = config.OnRefusal(func() { c.goWithout(namespace) })
	}
	pauses := c.pauses.Load()
	config.Newcomers = func(e stream.Event) (taken bool) {
		if taken = c.hasten(e, pauses); taken {
			pulse.Count(e)
		}
		return taken
	}
	s := stream.New(c.client, config)
	var done sync.WaitGroup
	done.Go(func() {
		defer over()
		defer forget()
		_ = s.Run(ctx, func(e stream.Event) {
			pulse.Deliver(e, func(e stream.Event) { c.deliver(namespace, e, pauses) })
		})
	})
	return func() { cancel(); done.Wait() }
}

// mayBeMissing reports whether the indices may be used without the objects of a namespace that
// the API server forbids to list. The user did not name such a namespace: a tenant who creates one
// that matches a pattern must not stop the handlers of all others. The index of a namespace
// that the user has named must be complete.
func (c *Controller) mayBeMissing(namespace string) bool {
	return namespace != "" && c.indexOnly.Load() && !c.config.Namespaces.Names(namespace)
}

// goWithout lets the index barrier open without a namespace that the API server forbids to
// list. The watch keeps trying, so the namespace is added when it may be listed.
func (c *Controller) goWithout(namespace string) {
	if c.config.Barrier.Drop(c.source(namespace)) {
		c.config.Log.Warn("The objects of the namespace are missing in the indices, because the operator may not list them. "+
			"Grant the permission, or exclude the namespace.", "resource", c.processor.Resource.String(), "namespace", namespace)
	}
}

// deliver handles or queues an event of a watch. since is the number of pauses before
// the watch started. If there was another pause, the watch is about to end, and its
// events are dropped: the next watch lists all objects again.
func (c *Controller) deliver(namespace string, e stream.Event, since uint32) {
	if e.Body != nil && !c.isServed(e.Body) || since != c.pauses.Load() {
		return
	}
	event := eventOf(e)
	switch {
	case e.Type == stream.Synced:
		c.synced(namespace, e.Namespaces, since)
	case c.take(event):
	default:
		c.put(e.Body.Key(), entry{event: event, since: since})
	}
}

// synced notes that a namespace was listed, or several if the watch has a scope.
func (c *Controller) synced(namespace string, several []string, since uint32) {
	if several == nil {
		several = []string{namespace}
	}
	for _, namespace := range several {
		c.config.Barrier.Synced(c.source(namespace))
	}
	c.catchUp(several, since)
}

// hasten handles or queues a watch event ahead of a list that is still being delivered.
// It returns false if the queue is full or only indices are being filled. The watch
// then delivers the event after the list.
func (c *Controller) hasten(e stream.Event, since uint32) (taken bool) {
	if c.indexOnly.Load() || !c.isServed(e.Body) || since != c.pauses.Load() {
		return false
	}
	event := eventOf(e)
	return c.take(event) || c.offer(e.Body.Key(), entry{event: event, since: since})
}

func eventOf(e stream.Event) *process.Event {
	event := &process.Event{Type: e.Type, Body: e.Body, Missed: e.Missed, Mark: e.Mark}
	if e.Type == kube.Listed {
		event.List, event.Authoritative = e.Mark, e.Authoritative
	}
	return event
}

// isServed reports whether an object is in the served scope. Only Namespace objects may
// be outside: their names must match the patterns.
func (c *Controller) isServed(b *object.Body) bool {
	patterns := c.config.Namespaces
	if len(patterns) == 0 || c.processor.Resource.Group != "" || c.processor.Resource.Plural != "namespaces" {
		return true
	}
	return patterns.Match(b.Name)
}

// Sources returns the names of the watches for the index barrier.
func (c *Controller) Sources() []string {
	names := make([]string, 0, len(c.places))
	for namespace := range c.places {
		names = append(names, c.source(namespace))
	}
	return names
}

// source returns the name of a watch for the index barrier and its log lines.
func (c *Controller) source(namespace string) string {
	if namespace == "" {
		return c.processor.Resource.String()
	}
	return c.processor.Resource.String() + " in " + namespace
}

// hasOthers reports whether there are handlers other than index functions.
func (c *Controller) hasOthers() bool {
	return len(c.processor.Handlers)+len(c.processor.Watchers) > 0 || c.processor.Daemons != nil || c.processor.Reconcile != nil
}

// unfollow ends all watches and waits for them.
func (c *Controller) unfollow() {
	for namespace, end := range c.streams {
		delete(c.streams, namespace)
		end()
	}
	c.scope = nil
}
