package engine

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// daemonsOf returns the daemons and timers of a resource. nil means that it has none.
func (s *server) daemonsOf(r *resource, handlers handler.Set) *daemon.Set {
	if len(handlers) == 0 {
		return nil
	}
	config := daemon.Config{
		Clock: s.daemons, Wake: r.ring, Polling: s.Polling,
		DefaultBackoff: s.Process.DefaultBackoff, ErrorDelays: s.Process.ErrorDelays, Jitter: s.Process.Jitter,
		ExitGrace: s.ExitTimeout, Observe: r.kind.Observe, Entrance: s.entry, Outages: s.client.Outages(),
		Room: func(ctx context.Context, stopping <-chan struct{}, body *object.Body) (leave func()) {
			cost, budget := costOf(body), s.budget
			if cost < costlyTurn {
				budget = s.modest
			}
			return budget.Acquire(cost, body.Namespace, ctx.Done(), stopping)
		},
		Write: func(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) (*object.Body, error) {
			applier := apply.Applier{API: s.client, Resource: r.kind.Resource, Log: r.kind.Logger(body), Fresh: fresh, Jitter: s.Process.Jitter}
			return applier.Apply(ctx, body, p, &patch.Patch{}, apply.Finalizer{})
		},
	}
	for _, h := range handlers {
		config.Specs = append(config.Specs, s.Config.Daemons[h])
	}
	return daemon.NewSet(config)
}

// indexersOf returns the index functions of a resource. nil means that it has none.
func (s *server) indexersOf(r *resource, handlers handler.Set) *index.Indexers {
	if len(handlers) == 0 {
		return nil
	}
	x := &index.Indexers{DefaultBackoff: s.Process.DefaultBackoff, Observe: r.kind.Observe}
	for _, h := range handlers {
		x.Functions = append(x.Functions, index.Function{Handler: h, Into: s.Indices[h]})
	}
	return x
}

// Sources that the index barrier waits for, in addition to the indexed resources.
const (
	resources = "the resources of the cluster"
	patterns  = "the namespaces of the cluster"
)

// newGate returns the index barrier. It opens when all indices are filled, and before
// that no handler is called. Without indices, it is open from the start.
func newGate(c Config) *index.Gate {
	if len(c.Indices) == 0 {
		return index.NewGate()
	}
	if _, fixed := c.Namespaces.Fixed(); fixed {
		return index.NewGate(resources)
	}
	return index.NewGate(resources, patterns)
}

// reminding is the interval of log lines about a wait.
const reminding = 10 * time.Second

// openGate waits until all indices are filled, and then starts all other handlers. It
// returns early if ctx is done.
func (s *server) openGate(ctx, work context.Context) {
	err := s.gate.Await(ctx, reminding, func(waiting []string) {
		if s.paused.Load() {
			return
		}
		s.Log.Warn("No handler is called yet, because some indices are not filled: these resources are not listed yet.", "waiting", waiting)
	})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(work)
}
