// Package engine starts, supervises and stops everything: it wires the other
// packages together and is the only one that does.
package engine

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Config is all that an operator is.
type Config struct {
	Cluster    *rest.Config
	Handlers   registry.Set                       // of all families
	Daemons    map[*registry.Handler]*daemon.Spec // of the handlers in the background
	Indices    map[*registry.Handler]index.Target // of the indexing handlers
	Namespaces observe.Namespaces                 // none for the whole cluster
	Log        *slog.Logger

	// ScanningDisabled keeps the operator from looking which custom resources and
	// namespaces come and go: namespaces must be plain names then.
	ScanningDisabled bool

	Version string // of the framework

	Posting     posting.Config
	Health      Health
	Peering     Peering
	Kube        kube.Options
	Stream      stream.Config // the resource and the namespace are filled in
	Process     process.Config
	ExitTimeout time.Duration // for handlers to return before they are cancelled
	Polling     time.Duration // between log lines about daemons that do not stop
	WorkerLimit int           // turns at the same time, for each resource; 0 for any number
	MaxWorkers  int           // calls of handlers of changes and events at the same time; 0 for any number
	Backlog     int           // bytes of events that may wait for their turn, for each resource

	// Running is given the means to influence the operator while it runs; may be
	// nil.
	Running func(Handle)
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
}

// patience is how long the operator waits for handlers that neither return nor
// heed their cancelled contexts, before it leaves them behind.
const patience = 5 * time.Second

// firstAnswer is how long the cluster may take to answer at the start.
const firstAnswer = 5 * time.Second

// Run serves the cluster until the context is done. It returns an error only
// if it could not start.
func Run(ctx context.Context, c Config) error {
	if c.ScanningDisabled {
		if err := c.Namespaces.RequireFixed(); err != nil {
			return err
		}
	}
	limitCalls(c.Handlers, c.MaxWorkers)
	counts, err := newMetrics(c)
	if err != nil {
		return err
	}
	v := newVitals(c, counts)
	counts.Observe(v.gauges)
	site, err := v.open(ctx, c)
	if err != nil {
		return err
	}
	asked, hush := context.WithCancel(context.WithoutCancel(ctx))
	var answering sync.WaitGroup
	defer func() { hush(); answering.Wait() }()
	if site != nil {
		answering.Go(func() {
			if err := site.Run(asked); err != nil {
				c.Log.Error("Health and metrics are not served any more.", "error", err)
			}
		})
	}
	c.Kube.Observe = v.request
	v.begin("the cluster is asked what it has")
	client, err := kube.NewClient(c.Cluster, c.Kube)
	if err != nil {
		return fmt.Errorf("connect to the cluster: %w", err)
	}
	defer client.Close()
	resources := &observe.Resources{Client: client, Stream: c.Stream, Log: c.Log, Disabled: c.ScanningDisabled}
	discovered, err := discover(ctx, c, resources)
	if ctx.Err() != nil {
		return nil // stopped before it began
	}
	if err != nil {
		return err
	}
	c.Log.Info("Client is configured.", "server", client.Host())

	work, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	s := newServer(c, client, v)
	if err := observe.Match(c.Handlers, discovered).Conflict; err != nil {
		return err
	}
	v.server.Store(s)
	if c.Running != nil {
		c.Running(s)
	}
	var clocks, tasks sync.WaitGroup
	tick, stopClocks := context.WithCancel(work)
	defer func() { stopClocks(); clocks.Wait() }()
	clocks.Go(func() { s.clock.Run(tick) })
	clocks.Go(func() { s.daemons.Run(tick) })
	clocks.Go(func() { s.poster.Run(tick) })
	if c.Peering.Mandatory && !c.Peering.Standalone {
		s.Pause(noPeering, "the peering was not seen yet, although it is mandatory")
	}
	s.serve(work, discovered)
	peers, leave := context.WithCancel(context.WithoutCancel(ctx))
	var meeting sync.WaitGroup
	defer func() { leave(); meeting.Wait() }() // after all else has stopped: others may begin then
	meeting.Go(func() { s.meetPeers(peers) })
	tasks.Go(func() { resources.Run(ctx, discovered, func(now []kind.Info) { s.serve(work, now) }) })
	tasks.Go(func() { s.followNamespaces(ctx, work) })
	tasks.Go(func() { s.openGate(ctx, work) })
	tasks.Go(func() { s.followResuming(ctx, work) })

	<-ctx.Done()
	c.Log.Info("The operator is stopping.")
	tasks.Wait()
	s.stop(cancel)
	return nil
}

// discover finds out what the cluster has. At the start, nobody is helped by
// an operator that waits for an unreachable cluster in silence: a few attempts
// are made, and then it is told.
func discover(ctx context.Context, c Config, resources *observe.Resources) ([]kind.Info, error) {
	o := c.Kube
	o.Backoffs = slices.Values([]time.Duration{time.Second, time.Second})
	o.RequestTimeout = min(o.RequestTimeout, firstAnswer)
	o.Log = slog.New(slog.DiscardHandler) // the error tells it all
	client, err := kube.NewClient(c.Cluster, o)
	if err != nil {
		return nil, fmt.Errorf("connect to the cluster: %w", err)
	}
	defer client.Close()
	found, err := client.Discover(ctx)
	if err != nil {
		return nil, fmt.Errorf("find out what the cluster has: %w", err)
	}
	resources.Tell(found)
	return found.Resources, nil
}
