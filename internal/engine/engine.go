// Package engine starts, supervises and stops everything: it wires the other
// packages together and is the only one that does.
package engine

import (
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/login"
	"gopf.dev/gopf/internal/objects"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Config is all that an operator is.
type Config struct {
	Login      login.Source
	Handlers   registry.Set                       // of all families
	Daemons    map[*registry.Handler]*daemon.Spec // of the handlers in the background
	Indices    map[*registry.Handler]index.Target // of the indexing handlers
	Namespaces observe.Namespaces                 // none for the whole cluster
	Log        *slog.Logger

	// ScanningDisabled keeps the operator from looking which custom resources and
	// namespaces come and go: namespaces must be plain names then.
	ScanningDisabled bool

	Version string // of the framework

	// Wait is how long the operator waits at the start for an API server that is not
	// up yet. 0 means a few attempts only.
	Wait time.Duration

	Posting     posting.Config
	Health      Health
	Peering     Peering
	Election    Election
	Admission   Admission
	Kube        kube.Options
	Stream      stream.Config // the resource and the namespace are filled in
	Process     process.Config
	ExitTimeout time.Duration // for handlers to return before they are cancelled
	Polling     time.Duration // between log lines about daemons that do not stop
	WorkerLimit int           // turns at the same time, for each resource; 0 for any number
	MaxWorkers  int           // calls of handlers of changes and events at the same time; 0 for any number
	Backlog     int           // bytes of events that may wait for their turn, for each resource

	// Activities are the ids of handlers that belong to no resource, and Counting
	// is given what counts their calls, if anybody wants to know; may be nil.
	Activities []string
	Counting   func(execute.Observer)

	// Ready is called when the operator has begun to serve; may be nil.
	Ready func()
	// Stopped is called when all handlers have stopped, while there still are
	// credentials; may be nil.
	Stopped func()
	// Running is given the means to influence the operator while it runs; may be
	// nil.
	Running func(Handle)
	// ForHandlers makes what handlers reach the cluster by; nil for the handle
	// itself.
	ForHandlers func(Handle) registry.API
}

// Handle influences a running operator.
type Handle interface {
	// Wake makes delayed handlers of an object due now: those with the ids, or
	// all.
	Wake(of kind.Selector, namespace, name string, ids []string)
	// Pause makes the operator handle nothing, and Resume ends the pause that the
	// same one has asked for.
	Pause(who, why string)
	Resume(who string)
	// RESTConfig configures other clients of the cluster.
	RESTConfig() *rest.Config
	// Objects reads and writes objects of any kind.
	Objects() *objects.Client
	// Post has a Kubernetes event posted; it does not wait.
	Post(posting.Event)
}

// patience is how long the operator waits for handlers that neither return nor
// heed their cancelled contexts, before it leaves them behind.
const patience = 5 * time.Second

// Run serves the cluster until the context is done. It returns an error only
// if it could not start.
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

	writes := &gate{}
	if c.Election.Enabled {
		c.Kube.Gate = writes.ask
	}
	client, vault, err := connect(ctx, &c, v)
	if ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	defer client.Close()
	defer background(ctx, func(ctx context.Context) { vault.Run(ctx, client) })()

	resources := &observe.Resources{Client: client.Reserved(forDiscovery), Stream: c.Stream, Log: c.Log, Disabled: c.ScanningDisabled}
	v.begin("the cluster is asked what it has")
	discovered, err := discover(ctx, c, resources.Client, resources)
	if ctx.Err() != nil {
		return nil
	}
	if err == nil {
		err = observe.Match(c.Handlers, discovered).Conflict
	}
	if err != nil {
		return err
	}
	c.Log.Info("Client is configured.", "server", client.Host())
	s := newServer(c, client, v)
	s.gateOfWrites = writes
	if s.control, err = s.newControl(); err != nil {
		return err
	}
	if c.Stopped != nil {
		defer c.Stopped()
	}
	return serve(ctx, s, resources, discovered)
}

// serve serves what was found, and all that comes, until the context is done.
func serve(ctx context.Context, s *server, resources *observe.Resources, discovered []kind.Info) error {
	ctx, halt := context.WithCancelCause(ctx)
	defer halt(nil)
	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	elector, err := s.candidate(ctx)
	if err != nil {
		return err
	}
	s.vitals.server.Store(s)
	if s.Running != nil {
		s.Running(s)
	}
	checks := func(ctx context.Context) { s.Stream.Shared.Run(ctx, s.client, s.Log) }
	defer background(work, s.clock.Run, s.daemons.Run, s.poster.Run, checks)()
	if s.Peering.Mandatory && !s.Peering.Standalone {
		s.Pause(noPeering, "the peering is mandatory, and was not seen yet; if the cluster has none, apply peering.yaml")
	}
	s.serve(work, discovered)
	defer background(ctx, s.meetPeers)() // until all has stopped: then others may begin
	if s.Ready != nil {
		s.Ready()
	}
	var election, reviews, tasks sync.WaitGroup
	election.Go(func() { s.elect(ctx, work, elector) })
	tasks.Go(func() { resources.Run(ctx, discovered, func(now []kind.Info) { s.serve(work, now) }) })
	tasks.Go(func() { s.followNamespaces(ctx, work) })
	if elector == nil { // or else it is opened for the one that is elected
		tasks.Go(func() { s.openGate(ctx, work) })
	}
	tasks.Go(func() { s.followResuming(ctx, work) })
	tasks.Go(func() { s.review(ctx) })
	reviews.Go(func() { s.answerReviews(ctx, func(err error) { halt(&failure{err}) }) })
	tasks.Go(func() { s.inquire(ctx) })

	<-ctx.Done()
	level := slog.LevelInfo
	if !errors.Is(context.Cause(ctx), context.Canceled) {
		level = slog.LevelDebug // whoever gave a cause has told it
	}
	s.Log.Log(ctx, level, "The operator is stopping.")
	tasks.Wait()
	s.stop(cancel)
	close(s.stopped)
	election.Wait()
	reviews.Wait() // the cluster may go on asking for a while, but the rest does not go on meanwhile
	if failed, ok := context.Cause(ctx).(*failure); ok {
		return failed.err
	}
	return nil
}

// failure is why an operator cannot go on.
type failure struct{ err error }

func (f *failure) Error() string { return f.err.Error() }

// background runs functions until the returned one is called, which waits for
// them. The end of the context is none for them.
func background(ctx context.Context, functions ...func(context.Context)) (end func()) {
	ctx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	var running sync.WaitGroup
	for _, fn := range functions {
		running.Go(func() { fn(ctx) })
	}
	return func() { cancel(); running.Wait() }
}
