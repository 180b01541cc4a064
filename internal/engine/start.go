package engine

import (
	"context"

	"gopf.dev/gopf/internal/connect"
	"gopf.dev/gopf/internal/peering"
	"gopf.dev/gopf/internal/vitals"
)

// open opens the listeners for health and metrics. The returned function serves
// them until its context is done.
func open(ctx context.Context, c Config) (*vitals.Vitals, func(context.Context), error) {
	config := c.Health
	config.Version, config.Inactivity, config.Log = c.Version, c.Stream.InactivityTimeout, c.Log
	v, err := vitals.New(config)
	if err != nil {
		return nil, nil, err
	}
	if counts := v.Activities(c.Activities); counts != nil && c.Counting != nil {
		c.Counting(counts)
	}
	site, err := v.Listen(ctx)
	return v, site, err
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
