// Package engine runs an operator: it starts, pauses, elects and stops. It is the only
// package that wires the others together. Read engine.go first: [Run] starts an operator,
// and live is its life. operator.go connects the parts. Each of the other files has one
// part of the life: start.go, pause.go, election.go, peers.go, reviews.go and stop.go.
//
// Start. [Run] opens the health and metrics endpoints, logs in, and discovers the
// resources of the cluster (package connect). Then live starts the goroutines below. It
// stops them in a fixed order and is the owner of all of them:
//
//   - clock, daemons and poster: alarms for retries, the schedule of daemons and
//     timers, and Kubernetes events. They run until all handlers have stopped.
//   - resources.Run: discovery. It calls controllers.Serve when the resources change.
//   - FollowNamespaces, DecideReach and OpenBarrier of the controllers: namespaces that
//     match a pattern, how to watch many of them, and the index barrier.
//   - followResuming: the restart of watches after a pause.
//   - elect and meetPeers: the lease and the peerings.
//   - answerReviews, reviewAccess, probe and paths.Run: admission, permissions, API
//     probes, and the check of paths against the schemas of the cluster.
//
// The controllers of the served resources are in package serving.
//
// Two contexts are passed around. ctx ends when the operator must stop. work is the
// parent of all handler contexts and ends later, after [Config.ExitTimeout].
//
// The states of a replica:
//
//   - Indexing: the resources with indices are listed, and no handler is called. When the
//     barrier opens, everything else starts.
//   - Standby: the same, until this replica gets the lease (election.go).
//   - Paused: the watches are closed and daemons stop, but running handlers finish
//     (pause.go). Resume lists all objects again.
//   - Lease lost: the write gate rejects writes at once, and standDown cancels all
//     handlers. The replica is a candidate again when they have returned.
//   - Stopping: stop (stop.go) starts no new turns, waits, cancels, and abandons the
//     handlers that do not return. After that, the lease is released and the peers
//     are notified.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/lease"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Run runs the operator until the context is done, and returns nil then. It returns
// an error if the operator cannot start, or if its admission webhooks fail.
func Run(ctx context.Context, c Config) error {
	if c.ScanningDisabled {
		if err := c.Namespaces.RequireFixed(); err != nil {
			return err
		}
	}
	c.Stream.Shared = &stream.Shared{}
	v, pages, site, err := open(ctx, c)
	if err != nil {
		return err
	}
	defer background(ctx, site)()

	writes := &lease.Gate{}
	if c.Election.Enabled {
		c.Kube.Gate = writes.Ask
	}
	connection, err := connect.Open(ctx, c.connection(), v)
	if ctx.Err() != nil {
		return nil // stopped during startup
	}
	if err != nil {
		return err
	}
	client := connection.Client
	v.ReviewWith(reviewing(client))
	c.Posting.Namespace = connection.Namespace // for Kubernetes events about cluster-scoped objects
	defer client.Close()
	defer background(ctx, func(ctx context.Context) { connection.Vault.Run(ctx, client) })()

	resources := &discovery.Resources{Client: client.Reserved(forDiscovery), Stream: c.Stream, Log: c.Log, Disabled: c.ScanningDisabled}
	v.Begin("discovering the resources of the cluster")
	discovered, err := connect.Discover(ctx, c.connection(), resources.Client, resources)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = discovery.Match(c.Handlers, discovered).Conflict
	}
	if err != nil {
		return err
	}
	c.Log.Info("Client is configured.", "server", client.Host())
	op := newOperator(c, client, v, writes)
	if op.control, err = op.newControl(); err != nil {
		return err
	}
	if c.Stopped != nil {
		defer c.Stopped()
	}
	if pages != nil {
		pages.Started(shown{op})
	}
	return op.live(ctx, resources, discovered)
}

// live serves the discovered resources, and later ones, until the context is done.
// It returns when all goroutines of the operator have ended.
func (op *operator) live(ctx context.Context, resources *discovery.Resources, discovered []kind.Info) error {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	elector, err := op.candidate(ctx)
	if err != nil {
		return err
	}
	op.vitals.Started(op)
	if op.Running != nil {
		op.Running(op)
	}
	checks := func(ctx context.Context) { op.Stream.Shared.Run(ctx, op.client, op.Log) }
	defer background(work, op.clock.Run, op.daemons.Run, op.poster.Run, checks)()
	if op.Peering.Mandatory && !op.Peering.Standalone {
		op.Pause(peering.NoPeering, "the peering is mandatory but was not found yet; if the cluster has no peering, apply peering.yaml")
	}
	op.controllers.Serve(ctx, work, discovered)
	defer background(ctx, func(ctx context.Context) { op.meetPeers(ctx, work) })() // ends after all handlers: only then may a peer start
	if op.Ready != nil {
		op.Ready()
	}

	var election, reviews, tasks sync.WaitGroup
	election.Go(func() { op.elect(ctx, work, elector) })
	reviews.Go(func() { op.answerReviews(ctx, func(err error) { halt(&failure{err}) }) })
	tasks.Go(func() {
		resources.Run(ctx, discovered, func(now []kind.Info) { op.controllers.Serve(ctx, work, now) })
	})
	tasks.Go(func() { op.controllers.FollowNamespaces(ctx, work) })
	tasks.Go(func() { op.controllers.DecideReach(ctx, work) })
	if elector == nil { // otherwise elect opens it
		tasks.Go(func() { op.controllers.OpenBarrier(ctx, work) })
	}
	tasks.Go(func() { op.followResuming(ctx, work) })
	tasks.Go(func() { op.reviewAccess(ctx) })
	tasks.Go(func() { op.probe(ctx) })
	tasks.Go(func() { op.paths.Run(ctx) })
	<-ctx.Done()

	level := slog.LevelInfo
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		level = slog.LevelDebug // the cause of the cancellation was logged already
	}
	op.Log.Log(ctx, level, "The operator is stopping.")
	tasks.Wait()
	op.stop(cancel)
	close(op.stopped)
	election.Wait()
	reviews.Wait() // webhooks linger, because the API server still sends requests
	if failed, ok := context.Cause(ctx).(*failure); ok {
		return failed.err
	}
	return nil
}

// failure is the cause of a cancellation that live returns as its error.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }
