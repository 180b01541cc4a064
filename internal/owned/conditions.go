package owned

import (
	"context"
	"errors"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/kind"
)

// conditions has the schemas that were read, and those that are being read.
type conditions struct {
	mu    sync.Mutex
	known map[schema.GroupVersionResource]*reading
}

// reading is the answer of one schema. Its fields may be read after done is closed.
type reading struct {
	done                 chan struct{}
	conditions, observed bool
	err                  error
}

// Conditions reports whether the schema of a resource has status.conditions and
// status.observedGeneration. It reads the schema once per resource: at a start, many
// objects need it at the same moment, and a schema is long. Both are false while the schema
// cannot be read.
func (c *Children) Conditions(ctx context.Context, of kind.Info) (conditions, observed bool) {
	for {
		r, first := c.conditions.of(of.GVR())
		if first {
			c.readConditions(ctx, of, r)
		}
		select {
		case <-r.done:
		case <-ctx.Done():
			return false, false
		}
		if first || r.err == nil || !canceled(r.err) {
			return r.conditions, r.observed
		}
		// Only the caller that sent the request was canceled.
	}
}

// of returns the reading of a resource. first means that the caller must make it.
func (c *conditions) of(gvr schema.GroupVersionResource) (r *reading, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if r = c.known[gvr]; r != nil {
		return r, false
	}
	if c.known == nil {
		c.known = map[schema.GroupVersionResource]*reading{}
	}
	r = &reading{done: make(chan struct{})}
	c.known[gvr] = r
	return r, true
}

// readConditions reads the schema. A reading that failed counts only for the callers that
// wait for it.
func (c *Children) readConditions(ctx context.Context, of kind.Info, r *reading) {
	defer close(r.done)
	found, err := c.config.Has(ctx, of, []string{"status", "conditions"}, []string{"status", "observedGeneration"})
	if err == nil {
		r.conditions, r.observed = found[0], found[1]
		return
	}
	r.err = err
	c.conditions.forget(of.GVR())
	c.config.Log.Debug("The schema of a resource cannot be read; its objects get no conditions now.", "resource", of.String(), "error", err)
}

func (c *conditions) forget(gvr schema.GroupVersionResource) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.known, gvr)
}

func canceled(err error) bool {
	return errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded)
}
