package controller

import (
	"context"
	"strings"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// room returns how a call of a daemon or a timer waits for memory. A timer takes as much as a
// turn. A daemon may run for as long as the object exists, so it has other limits, and only the
// object that it holds counts.
func (c *Controller) room(body *object.Body, spec *daemon.Spec) daemon.Wait {
	id := body.Identity
	if !spec.Timer {
		held := heldBy(body, spec)
		if held < heldObject {
			return nil
		}
		return func(ctx context.Context, stopping <-chan struct{}) (leave func()) {
			late := time.AfterFunc(costlyPatience, func() {
				c.processor.Logger(&object.Body{Identity: id}).Warn("The daemon waits, because the objects of running daemons take too much memory. Increase the memory limit, or use a timer.", "handler", spec.ID)
			})
			defer late.Stop()
			return c.config.Held.Acquire(held, id.Namespace, ctx.Done(), stopping)
		}
	}
	cost, budget := c.costOf(body), c.config.Budget
	if cost == 0 {
		return nil
	}
	if cost < costlyTurn {
		budget = c.config.Modest
	}
	return func(ctx context.Context, stopping <-chan struct{}) (leave func()) {
		return budget.Acquire(cost, id.Namespace, ctx.Done(), stopping)
	}
}

// admit is the [daemon.Config.Admit] of the controller. Calls of timers count like running
// handlers. Those on large objects are a crowd apart, because they may wait for the budgets of
// room. Their objects count here as well, up to the size that always counts there.
func (c *Controller) admit(lane daemon.Lane, size int, again func()) (leave func()) {
	group, memory := lane.Namespace, callMemory+min(copies*size, 2*modestTurn)
	if lane.Large {
		group += largeCrowd
	}
	return c.config.Crowd.Enter(group, memory, c.processor.Daemons, again)
}

// largeCrowd is the end of the groups for timers on large objects. No namespace contains it.
const largeCrowd = "/large"

// heldBy returns the memory that a daemon holds while it runs, in bytes: the object, decoded
// for the handler.
func heldBy(body *object.Body, spec *daemon.Spec) int {
	if spec.Type == nil {
		return body.Size() + body.Memory()
	}
	return body.Size() + body.MemoryAs(footprint.Of(spec.Type), heldObject/2)
}

// daemonsOf returns the daemons and timers. nil means that there are none.
func (c *Controller) daemonsOf(handlers handler.Set) *daemon.Set {
	if len(handlers) == 0 {
		return nil
	}
	shared := &c.config
	config := daemon.Config{
		Clock: shared.DaemonClock, Wake: c.ring, Polling: shared.Polling,
		DefaultBackoff: shared.Process.DefaultBackoff, ErrorDelays: shared.Process.ErrorDelays, Jitter: shared.Process.Jitter,
		ExitGrace: shared.ExitTimeout, Observe: c.processor.Observe, Entrance: shared.Entrance, Outages: shared.Client.Outages(),
		Room: c.room, Admit: c.admit,
		Write: func(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) (*object.Body, error) {
			applier := apply.Applier{API: shared.Client, Resource: c.processor.Resource, Log: c.processor.Logger(body), Fresh: fresh, Jitter: shared.Process.Jitter}
			leave, err := shared.Heavy.Enter(ctx, body, p)
			if err != nil {
				return body, err
			}
			defer leave()
			return applier.Apply(ctx, body, p, &patch.Patch{}, apply.Finalizer{})
		},
	}
	if trail := c.processor.Trail; trail != nil {
		config.Called = trail.Called
		write := config.Write
		config.Write = func(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) (*object.Body, error) {
			start := time.Now()
			after, err := write(ctx, body, p, fresh)
			trail.Wrote(body.UID, err, start)
			return after, err
		}
	}
	for _, h := range handlers {
		config.Specs = append(config.Specs, shared.Daemons[h])
	}
	return daemon.NewSet(config)
}

// indexersOf returns the index functions. nil means that there are none.
func (c *Controller) indexersOf(handlers handler.Set) *index.Indexers {
	if len(handlers) == 0 {
		return nil
	}
	x := &index.Indexers{DefaultBackoff: c.config.Process.DefaultBackoff, Observe: c.processor.Observe}
	for _, h := range handlers {
		x.Functions = append(x.Functions, index.Function{Handler: h, Into: c.config.Indices[h]})
	}
	return x
}

// announce logs that the operator will write to objects of a built-in kind, and which
// handlers cause that.
func (c *Controller) announce() {
	k := c.processor
	if g := k.Resource.Group; strings.Contains(g, ".") && !strings.HasSuffix(g, ".k8s.io") || len(k.Handlers) == 0 && k.Daemons == nil {
		return
	}
	var annotated, finalized []string
	if k.Daemons != nil {
		for _, spec := range k.Daemons.Specs {
			if spec.Mandatory {
				finalized = append(finalized, spec.ID)
			}
		}
	}
	for _, h := range k.Handlers {
		annotated = append(annotated, h.ID)
		if h.Mandatory {
			finalized = append(finalized, h.ID)
		}
	}
	if len(annotated)+len(finalized) == 0 {
		return // daemons and timers without finalizers leave nothing on objects
	}
	c.config.Log.Info("Objects of a built-in kind that match the filters will get annotations, and finalizers if a handler must run before the deletion.",
		"resource", k.Resource.String(), "annotated", annotated, "finalized", finalized)
}
