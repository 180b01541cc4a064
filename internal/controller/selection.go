package controller

import (
	"context"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// With a label selector, the API server reports an object that stops matching as deleted.
// The real deletion of such an object is never reported.

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
	version, _ := body.Version()
	if c.served.HandOver {
		c.mu.Lock()
		m := c.memories[key]
		c.mu.Unlock()
		if m != nil {
			c.part(key, m, version)
		}
		return e, false
	}
	event.Type, event.Body, event.Missed, event.Mark = kube.Modified, body, false, mark
	e.event, e.left = &event, true
	c.leaving.Store(key, version)
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

// part drops the memory of an object that left the selection and is released. Its daemons
// are stopped. version is the version in which it left: older events are stale.
func (c *Controller) part(key string, m *process.Memory, version uint64) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.leaving.Delete(key)
	c.leave(key, m)
	c.strike(key, m)
	c.gone.add(key, grave{mark: m.Mark(), version: version})
}
