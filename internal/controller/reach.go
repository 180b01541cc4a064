package controller

import (
	"context"
	"iter"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
)

const (
	// manyNamespaces is the number of namespaces above which one watch of the whole
	// cluster serves a resource, if the operator may list and watch the whole cluster.
	// It reads the objects of other namespaces as well. But a watch for each namespace
	// costs the operator and the API server memory and requests, even in an empty one.
	manyNamespaces = 50

	// ownConnections is the number of namespaces up to which every watch has its own
	// connection.
	ownConnections = 8
)

// reach is a way to watch the namespaces of a resource.
type reach int

const (
	undecided reach = iota
	separate        // a watch for each namespace
	cluster         // one watch of the cluster for all of them
)

// Crowded reports whether there are so many namespaces that one watch of the cluster
// should serve them, and it does not.
func (c *Controller) Crowded() bool {
	return len(c.places) > manyNamespaces && c.reach != cluster
}

// Undecided reports whether [Controller.Reach] must be called before further namespaces
// can be watched.
func (c *Controller) Undecided() bool { return c.Crowded() && c.reach == undecided }

// Refused reports whether one watch serves many namespaces, but the API server forbids
// it now.
func (c *Controller) Refused() bool { return c.reach == cluster && c.refused.Load() }

// Reach decides how the namespaces are watched: with one watch of the cluster, or with
// one for each. If the running watches must be replaced, the caller must call end, which
// waits until they have ended, and after that [Controller.Reached]. Otherwise, end is nil.
// In either case, [Controller.Follow] starts the missing watches. They list all objects
// again, as after any interruption of a watch, so no change is lost.
func (c *Controller) Reach(everywhere bool) (end func()) {
	before := c.reach
	c.reach = separate
	if everywhere {
		c.reach = cluster
	}
	if c.reaching || len(c.streams) == 0 || (before == cluster) == everywhere {
		return nil
	}
	c.reaching = true
	ending := slices.Collect(maps.Values(c.streams))
	return func() {
		for _, end := range ending {
			end()
		}
	}
}

// Reached completes [Controller.Reach] after the watches have ended.
func (c *Controller) Reached() {
	c.reaching = false
	c.dropStreams()
}

// dropStreams forgets watches that have ended.
func (c *Controller) dropStreams() {
	clear(c.streams)
	c.scope = nil
}

// startWide starts one watch of the cluster for all served namespaces.
func (c *Controller) startWide(ctx context.Context) (end func()) {
	c.refused.Store(false)
	c.scope = stream.NewScope(func(namespace string) iter.Seq[object.Identity] { return c.known(namespace) }, maps.Keys(c.places))
	return c.start(ctx, "", c.scope)
}

// noteRefusal returns a function that passes the status of the watch of the cluster on,
// and requests a decision if the API server forbids that watch.
func (c *Controller) noteRefusal(pass func(stream.Status)) func(stream.Status) {
	return func(s stream.Status) {
		if pass != nil {
			pass(s)
		}
		refused := apierrors.IsForbidden(s.Err)
		if c.refused.Store(refused); refused {
			c.config.Ask()
		}
	}
}
