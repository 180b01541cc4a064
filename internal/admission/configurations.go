package admission

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// ConfigurationsOptions say which webhook configurations are managed.
type ConfigurationsOptions struct {
	Managed   string // the name of both configurations
	Handlers  registry.Set
	Namespace string // the operator's own; "" if unknown
	Log       *slog.Logger

	// Own returns what the operator writes for itself. It is called when the server is
	// announced. nil means nothing, and then webhooks have no match conditions.
	Own func() Own

	// Jitter shortens the delays of retries. nil means exact delays.
	Jitter jitter.Source

	// Stay leaves all webhooks in place at the end, because other replicas serve them.
	Stay bool

	// Status, if set, is told when a configuration cannot be written, and (nil)
	// when it can again.
	Status func(error)
}

// Configurations keeps the two webhook configurations of a cluster, validating and
// mutating, as handlers want them.
//
// # Guarantees
//
// Only webhooks whose names end with that of the configuration are touched, others
// in it stay as they are. Nothing is written that is there already. What somebody
// else changes is restored: at once the first time, with growing pauses if that
// goes on. Errors of the cluster are retried for ever. At the end, only persistent
// webhooks are left, or all of them with Stay; the configurations themselves stay.
type Configurations struct {
	ConfigurationsOptions
	keepers []*keeper

	mu        sync.Mutex
	server    *webhook.ClientConfig // nil until announced
	resources []kind.Info
	known     bool // the resources are
}

// NewConfigurations makes a manager; Run starts it.
func NewConfigurations(client *kube.Client, o ConfigurationsOptions) *Configurations {
	return newConfigurations(client, follower(client, o.Managed, o.Log), o)
}

func newConfigurations(api API, follow follow, o ConfigurationsOptions) *Configurations {
	c := &Configurations{ConfigurationsOptions: o}
	for _, mutating := range []bool{false, true} {
		c.keepers = append(c.keepers, newKeeper(api, follow, mutating, &c.ConfigurationsOptions))
	}
	return c
}

// follow tells of all changes of the objects of a resource until ctx is done; the
// body of one that is gone has only its name.
type follow func(ctx context.Context, info kind.Info, changed func(b *object.Body, gone bool))

// follower follows the configuration of one name: permissions may be limited to it.
func follower(client *kube.Client, name string, log *slog.Logger) follow {
	return func(ctx context.Context, info kind.Info, changed func(*object.Body, bool)) {
		cfg := stream.DefaultConfig(info, "")
		cfg.Log, cfg.Fields = log, "metadata.name="+name
		_ = stream.New(client, cfg).Run(ctx, func(e stream.Event) { // it ends only with ctx
			if e.Body != nil {
				changed(e.Body, e.Type == stream.Deleted)
			}
		})
	}
}

// cleanupTime is how long the cluster may take at the end.
const cleanupTime = 10 * time.Second

// Run keeps the configurations until ctx is done, and then cleans them up.
func (c *Configurations) Run(ctx context.Context) error {
	var running sync.WaitGroup
	failures := make([]error, len(c.keepers))
	for i, k := range c.keepers {
		running.Go(func() { failures[i] = k.run(ctx) })
	}
	running.Wait()
	return errors.Join(failures...)
}

// Absent reports whether a configuration was found not to exist, so that it must be
// created.
func (c *Configurations) Absent(mutating bool) bool {
	return slices.ContainsFunc(c.keepers, func(k *keeper) bool { return k.mutating == mutating && k.absent.Load() })
}

// Announce tells where the webhook server is, and returns when the cluster knows
// it, or when ctx is done.
func (c *Configurations) Announce(ctx context.Context, server webhook.ClientConfig) {
	c.change(func() { c.server = &server })
	for _, k := range c.keepers {
		k.settled(ctx)
	}
}

// Discovered tells which resources the cluster has now.
func (c *Configurations) Discovered(resources []kind.Info) {
	c.change(func() { c.resources, c.known = resources, true })
}

// change makes a new plan for the keepers, as soon as there can be one.
func (c *Configurations) change(apply func()) {
	c.mu.Lock()
	defer c.mu.Unlock()
	apply()
	if c.server == nil || !c.known {
		return
	}
	plan := Plan{Managed: c.Managed, Handlers: c.Handlers, Resources: c.resources, Server: *c.server, Namespace: c.Namespace}
	if c.Own != nil {
		plan.Conditions = c.Own().Conditions()
	}
	for _, k := range c.keepers {
		k.plan(plan)
	}
}
