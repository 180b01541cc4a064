// Package engine runs an operator: it starts, pauses, elects and stops. It is the only
// package that wires the others together. Read engine.go first, then server.go: the
// server has the controllers of the served resources. Each of the other files has one
// part of an operator's life: start.go, barrier.go, pause.go, election.go and stop.go.
//
// Start. [Run] opens the health and metrics endpoints, logs in, and discovers the
// resources of the cluster (package connect). Then serve starts the goroutines below. It
// stops them in a fixed order and is the owner of all of them:
//
//   - clock, daemons and poster: alarms for retries, the schedule of daemons and
//     timers, and Kubernetes events. They run until all handlers have stopped.
//   - resources.Run: discovery. It calls server.serve when the resources change.
//   - followNamespaces, decideReach, openBarrier and followResuming: namespaces that
//     match a pattern, how to watch many of them, the index barrier, and the restart of
//     watches after a pause.
//   - elect and meetPeers: the lease and the peerings.
//   - answerReviews, review, probe and paths.Run: admission, permissions, API
//     probes, and the check of paths against the schemas of the cluster.
//
// A server has one controller for each served resource, guarded by server.mu. Nothing
// waits for a handler or for a watch while it holds server.mu, because the shutdown
// needs that lock.
//
// Two contexts are passed around. ctx ends when the operator must stop. work is the
// parent of all handler contexts and ends later, after [Config.ExitTimeout].
//
// The states of a replica:
//
//   - Indexing: the resources with indices are listed, and no handler is called.
//     begin (barrier.go) starts everything else when the barrier opens.
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
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/lease"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// Config describes an operator: its handlers, scope and settings.
type Config struct {
	Login      login.Source
	Handlers   handler.Set                       // of all families
	Daemons    map[*handler.Handler]*daemon.Spec // of the daemons and timers
	Indices    map[*handler.Handler]index.Target // of the indexing handlers
	Namespaces discovery.Namespaces              // empty means the whole cluster
	Log        *slog.Logger

	// ScanningDisabled turns off the watches of custom resource definitions and
	// namespaces. Namespaces must then be plain names; [Run] rejects patterns.
	ScanningDisabled bool

	Version string // of the framework
	Name    string // of the operator; "" means none. Reconcile handlers require one.

	// Wait limits the time that the operator waits at startup for an API server that is
	// not up yet. 0 means only a few attempts.
	Wait time.Duration

	Posting     recorder.Config
	Health      vitals.Config // version, inactivity and log are filled in
	Peering     Peering
	Election    Election
	Admission   Admission
	Kube        kube.Options
	Stream      stream.Config // the resource and the namespace are filled in
	Process     process.Config
	ExitTimeout time.Duration // for handlers to return before their contexts are canceled
	Polling     time.Duration // between log lines about daemons that do not stop
	WorkerLimit int           // limits concurrent turns of each resource; 0 means no limit
	MaxWorkers  int           // limits concurrent calls of change and event handlers; 0 means no limit
	Backlog     int           // limits the bytes of queued events of each resource

	// Activities lists the ids of the handlers that belong to no resource. Counting
	// receives the observer of their calls if metrics are enabled. It may be nil.
	Activities []string
	Counting   func(execute.Observer)

	// Ready is called once, when the operator serves its resources. May be nil.
	Ready func()
	// Stopped is called once, when all handlers have stopped. The client still has
	// its credentials. May be nil.
	Stopped func()
	// Running is called once with the handle of the operator, before it serves
	// anything. May be nil.
	Running func(Handle)
	// ForHandlers returns the API that handlers use. nil means the handle itself.
	ForHandlers func(Handle) handler.API
}

// Handle controls a running operator. It is safe for concurrent use.
type Handle interface {
	// Wake calls delayed handlers of an object now. No ids means all handlers.
	// Unknown objects are ignored.
	Wake(of kind.Selector, namespace, name string, ids []string)
	// WakeOwner calls delayed handlers of the object with the uid now, if it can own
	// objects in the namespace. Unknown objects are ignored.
	WakeOwner(of kind.Selector, namespace, uid string)
	// Pause stops the handling of objects until Resume is called with the same who.
	// The operator works again when no pause is left. why is shown in logs and health.
	Pause(who, why string)
	Resume(who string)
	// RESTConfig returns a configuration for other clients of the cluster.
	RESTConfig() *rest.Config
	// Objects returns a client for objects of any kind.
	Objects() *apiclient.Objects
	// Post queues a Kubernetes event. It does not wait for the API server.
	Post(recorder.Event)
}

// Run runs the operator until the context is done, and returns nil then. It returns
// an error if the operator cannot start, or if its admission webhooks fail.
func Run(ctx context.Context, c Config) error {
	if c.ScanningDisabled {
		if err := c.Namespaces.RequireFixed(); err != nil {
			return err
		}
	}
	c.Stream.Shared = &stream.Shared{}
	v, site, err := open(ctx, c)
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
	s := newServer(c, client, v)
	s.writeGate = writes
	if s.control, err = s.newControl(); err != nil {
		return err
	}
	if c.Stopped != nil {
		defer c.Stopped()
	}
	return serve(ctx, s, resources, discovered)
}

// serve serves the discovered resources, and later ones, until the context is done.
// It returns when all goroutines of the operator have ended.
func serve(ctx context.Context, s *server, resources *discovery.Resources, discovered []kind.Info) error {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	elector, err := s.candidate(ctx)
	if err != nil {
		return err
	}
	s.vitals.Started(s)
	if s.Running != nil {
		s.Running(s)
	}
	checks := func(ctx context.Context) { s.Stream.Shared.Run(ctx, s.client, s.Log) }
	defer background(work, s.clock.Run, s.daemons.Run, s.poster.Run, checks)()
	if s.Peering.Mandatory && !s.Peering.Standalone {
		s.Pause(peering.NoPeering, "the peering is mandatory but was not found yet; if the cluster has no peering, apply peering.yaml")
	}
	s.serve(ctx, work, discovered)
	defer background(ctx, s.meetPeers)() // ends after all handlers: only then may a peer start
	if s.Ready != nil {
		s.Ready()
	}
	var election, reviews, tasks sync.WaitGroup
	election.Go(func() { s.elect(ctx, work, elector) })
	tasks.Go(func() { resources.Run(ctx, discovered, func(now []kind.Info) { s.serve(ctx, work, now) }) })
	tasks.Go(func() { s.followNamespaces(ctx, work) })
	tasks.Go(func() { s.decideReach(ctx, work) })
	if elector == nil { // otherwise lead opens it
		tasks.Go(func() { s.openBarrier(ctx, work) })
	}
	tasks.Go(func() { s.followResuming(ctx, work) })
	tasks.Go(func() { s.review(ctx) })
	reviews.Go(func() { s.answerReviews(ctx, func(err error) { halt(&failure{err}) }) })
	tasks.Go(func() { s.probe(ctx) })
	tasks.Go(func() { s.paths.Run(ctx) })

	<-ctx.Done()
	level := slog.LevelInfo
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		level = slog.LevelDebug // the cause of the cancellation was logged already
	}
	s.Log.Log(ctx, level, "The operator is stopping.")
	tasks.Wait()
	s.stop(cancel)
	close(s.stopped)
	election.Wait()
	reviews.Wait() // webhooks linger, because the API server still sends requests
	if failed, ok := context.Cause(ctx).(*failure); ok {
		return failed.err
	}
	return nil
}

// failure is the cause of a cancellation that serve returns as its error.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// background runs each function in a goroutine. The caller must call end, which
// cancels their context and waits for them. Cancellation of ctx does not end them.
func background(ctx context.Context, functions ...func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, fn := range functions {
		running.Go(func() { fn(ctx) })
	}
	return func() { cancel(); running.Wait() }
}
