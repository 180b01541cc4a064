package controller

import (
	"context"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// With a label selector, the API server reports an object that stops matching as deleted.
// The real deletion of such an object is never reported.

// restrict limits the controller to the objects that the label selector of its handlers selects.
func (c *Controller) restrict() {
	if c.served.Select == "" {
		return
	}
	c.selector, _ = metalabels.Parse(c.served.Select) // it was checked when it was declared
	left := func(b *object.Body) bool { return !handler.Selects(c.selector, b) }
	if c.served.HandOver {
		c.processor.HandedOver = left
	} else {
		c.processor.Left = left
	}
}

// reenters reports whether a queued deletion event only means that the object left the selection,
// because it is selected again in the newer state: a deleted object has no later versions. A list
// may come from an API server that lags behind, so only watch events count. Clients can change
// labels at any rate while a handler runs, so such deletions must not pile up.
func (c *Controller) reenters(gone, e *process.Event) bool {
	if c.selector == nil || !gone.Gone() || e.Gone() || e.Listed() {
		return false
	}
	before, now := gone.Body.Identity, e.Body.Identity
	return before.UID != "" && before.UID == now.UID && now.Newer(before)
}

// mayHaveLeft reports whether a deletion event of the object may mean that it left the
// selection, and this makes a difference.
func (c *Controller) mayHaveLeft(key string) bool {
	if c.selector == nil || !c.hasOthers() {
		return false // an index drops the object in both cases
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.memories[key] != nil
}

// resolve reads the object of a deletion event. If the object left the selection, the
// event becomes one of its present state, which matches no handler: the turn releases the
// object. If the object is selected again, its event follows, so the entry loses this one.
// now is false if there is nothing left to do.
func (c *Controller) resolve(ctx context.Context, key string, e entry) (_ entry, now bool) {
	event := *e.event
	mark := c.processor.Mark()
	body, err := c.lookUp(ctx, event.Body.Identity)
	switch {
	case err != nil:
		return e, false // the operator is stopping
	case body == nil:
		return e, true
	case handler.Selects(c.selector, body):
		e.event = nil
		return e, e.wake != nil || e.alarm || e.hurry
	}
	if c.served.HandOver {
		c.handOver(key, body)
		return e, false
	}
	event.Type, event.Body, event.Missed, event.Mark = kube.Modified, body, false, mark
	e.event, e.left = &event, true
	return e, true
}

// lookUp reads an object, whatever its labels. nil means that it does not exist. Reading is
// retried until ctx is done, which is the only error.
func (c *Controller) lookUp(ctx context.Context, of object.Identity) (*object.Body, error) {
	for attempt := 1; ; attempt++ {
		body, err := c.readLeft(ctx, of)
		if err == nil {
			return body, nil
		}
		c.processor.Log.Debug("Failed to read an object that may have left the selection; retrying.",
			"namespace", of.Namespace, "name", of.Name, "error", err)
		c.queue.Aside(of.Namespace, callMemory, func() { _ = backoff.Sleep(ctx, rereading.After(attempt)) })
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
}

// maxReads limits the objects of a namespace whose size is not known and that are read at the
// same time.
const maxReads = 2

// readLeft is read within the limit of the namespace: the object may have grown since it left
// the selection.
func (c *Controller) readLeft(ctx context.Context, of object.Identity) (body *object.Body, err error) {
	leave := func() {}
	c.queue.Aside(of.Namespace, callMemory, func() { leave, err = c.config.Reads.Enter(ctx, of.Namespace, maxReads) })
	if err != nil {
		return nil, err
	}
	defer leave()
	return c.read(ctx, of, "")
}

// noteSelection notes whether an object has left the selection, or is selected again. The caller
// must hold c.mu.
func (c *Controller) noteSelection(key string, e entry) {
	switch {
	case c.selector == nil:
	case e.left:
		version, _ := e.event.Body.Version()
		c.leaving.Store(key, version)
	default:
		c.leaving.Delete(key)
	}
}

// isLeaving reports whether an object has left the selection and is not released yet.
func (c *Controller) isLeaving(key string) bool {
	_, leaving := c.leaving.Load(key)
	return leaving
}

// hasVanished reports whether an object that has left the selection no longer exists. It reads
// the object, because no event will tell.
func (c *Controller) hasVanished(ctx context.Context, key string, m *process.Memory) bool {
	if !c.isLeaving(key) {
		return false
	}
	body, err := c.lookUp(ctx, object.Identity{UID: m.UID(), Namespace: m.Namespace(), Name: m.Name()})
	return err == nil && body == nil
}

// handOver drops the memory of an object that another operator selects now.
func (c *Controller) handOver(key string, body *object.Body) {
	version, _ := body.Version()
	c.mu.Lock()
	m := c.memories[key]
	c.mu.Unlock()
	if m != nil {
		c.leaving.Store(key, version)
		c.part(key, m)
	}
}

// part drops the memory of an object that left the selection, and is released or gone. Its
// daemons are stopped. Events from before the version in which it left are stale.
func (c *Controller) part(key string, m *process.Memory) {
	c.mu.Lock()
	defer c.mu.Unlock()
	version, _ := c.leaving.Load(key)
	of := grave{mark: m.Mark()}
	of.version, _ = version.(uint64)
	c.leave(key, m)
	c.strike(key, m)
	c.gone.add(key, of)
}
