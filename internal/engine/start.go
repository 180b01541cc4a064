package engine

import (
	"context"
	"sync"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/insight"
	"gopf.dev/gopf/internal/page"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/internal/vitals"
)

// open opens the listeners for health, metrics and the page. The returned function serves
// them until its context is done. A nil page means that it is
// not served.
func open(ctx context.Context, c Config) (*vitals.Vitals, *page.Page, func(context.Context), error) {
	config := c.Health
	config.Insight = c.Insight
	config.Version, config.Inactivity, config.Log = c.Version, c.Stream.InactivityTimeout, c.Log
	v, err := vitals.New(config)
	if err != nil {
		return nil, nil, nil, err
	}
	if counts := v.Activities(c.Activities); counts != nil && c.Counting != nil {
		c.Counting(counts)
	}
	if c.Insight == "" {
		site, err := v.Listen(ctx)
		return v, nil, site, err
	}
	pages := page.New(v.Metrics().Handler(), c.Log)
	pages.AnyHost = config.SecureInsight
	v.Page = pages
	site, err := v.Listen(ctx)
	return v, pages, func(ctx context.Context) {
		var sampling sync.WaitGroup
		sampling.Go(func() { pages.Run(ctx) })
		site(ctx)
		sampling.Wait()
	}, err
}

// connection returns the part of the configuration that a connection needs.
func (c *Config) connection() connect.Config {
	return connect.Config{Login: c.Login, Kube: c.Kube, Stream: c.Stream, Log: c.Log, Wait: c.Wait}
}

// peerings returns the scope of the operator's peerings.
func (c *Config) peerings() connect.Scope {
	return connect.Scope{Name: c.Peering.Name, Clusterwide: c.Peering.Clusterwide, Namespaces: c.Namespaces}
}

// Freeze adds a record to all peerings of the operator's scope; see [connect.Freeze].
func Freeze(ctx context.Context, c Config, r peering.Record) error {
	return connect.Freeze(ctx, c.connection(), c.peerings(), r)
}

// Unfreeze removes the record of [Freeze]; see [connect.Unfreeze].
func Unfreeze(ctx context.Context, c Config, identity string) error {
	return connect.Unfreeze(ctx, c.connection(), c.peerings(), identity)
}

// MoveState moves the state of all objects with change handlers; see
// [placement.Move.Run]. It fills in the configuration of the operator.
func MoveState(ctx context.Context, c Config, m placement.Move) error {
	m.Connection, m.Handlers, m.Namespaces, m.Process, m.Log = c.connection(), c.Handlers, c.Namespaces, c.Process, c.Log
	return m.Run(ctx)
}

// Insight returns the commands about single objects of the operator.
func Insight(c Config) *insight.Operator {
	op := &insight.Operator{
		Connection: c.connection(), Handlers: c.Handlers, Daemons: c.Daemons, Namespaces: c.Namespaces, Process: c.Process, Log: c.Log,
		Name: c.Name, Webhooks: c.Admission.Managed, Indices: c.Indices,
	}
	if c.Election.Enabled {
		op.Lease = insight.Lease{Namespace: c.Election.Namespace, Name: c.Election.Name}
	}
	if !c.Peering.Standalone {
		op.Peering = c.peerings()
	}
	return op
}

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
