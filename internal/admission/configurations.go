package admission

import (
	"context"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

// ConfigurationsOptions configure [Configurations].
type ConfigurationsOptions struct {
	Managed   string // the name of both configurations
	Handlers  handler.Set
	Namespace string // the operator's own namespace; "" means unknown
	Log       *slog.Logger

	// Own describes the operator's own writes. It is called when the server is
	// announced. nil means that webhooks have no match conditions.
	Own func() Own

	// Jitter shortens the delays of retries. nil means exact delays.
	Jitter jitter.Source

	// Stay leaves all webhooks in place at the end, because other replicas serve them.
	Stay bool

	// Status is called with an error when a configuration cannot be written, and with
	// nil when it can be written again. May be nil.
	Status func(error)
}

// Configurations manages the operator's validating and mutating webhook configurations
// in the cluster.
//
// # Guarantees
//
// Only webhooks whose names end with the name of the configuration are touched; others
// in it are preserved. Nothing is written without a difference. Changes by other clients
// are reverted: at once the first time, then with exponential backoff. Failed requests
// are retried until Run ends. At the end, only persistent webhooks remain, or all of
// them with Stay. The configurations themselves are never deleted.
type Configurations struct {
	ConfigurationsOptions
	keepers []*keeper

	mu        sync.Mutex
	server    *webhook.ClientConfig // nil until announced
	resources []kind.Info
	known     bool // resources is set
}

// NewConfigurations returns a manager. Call [Configurations.Run] to start it.
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

// follow calls changed for all changes of the objects of a resource until ctx is done.
// The body of a deleted object may have only its name.
type follow func(ctx context.Context, info kind.Info, changed func(b *object.Body, gone bool))

// follower watches only the configuration with this name, because the operator's
// permissions may be limited to it.
func follower(client *kube.Client, name string, log *slog.Logger) follow {
	return func(ctx context.Context, info kind.Info, changed func(*object.Body, bool)) {
		cfg := stream.DefaultConfig(info, "")
		cfg.Log, cfg.Fields = log, "metadata.name="+name
		_ = stream.New(client, cfg).Run(ctx, func(e stream.Event) { // it ends only with ctx
			if e.Body != nil {
				changed(e.Body, e.Type == kube.Deleted)
			}
		})
	}
}

// cleanupTime limits the cleanup at the end.
const cleanupTime = 10 * time.Second

// Run manages the configurations until ctx is done, and then cleans them up. The error
// is that of the cleanup.
func (c *Configurations) Run(ctx context.Context) error {
	var running sync.WaitGroup
	failures := make([]error, len(c.keepers))
	for i, k := range c.keepers {
		running.Go(func() { failures[i] = k.run(ctx) })
	}
	running.Wait()
	return errors.Join(failures...)
}

// Absent reports whether a configuration did not exist when it was last read. The
// operator then needs the permission to create it.
func (c *Configurations) Absent(mutating bool) bool {
	return slices.ContainsFunc(c.keepers, func(k *keeper) bool { return k.mutating == mutating && k.absent.Load() })
}

// Announce sets the address of the webhook server. It returns when the configurations
// have it, or when ctx is done.
func (c *Configurations) Announce(ctx context.Context, server webhook.ClientConfig) {
	c.change(func() { c.server = &server })
	for _, k := range c.keepers {
		k.waitApplied(ctx)
	}
}

// Discovered sets the resources of the cluster.
func (c *Configurations) Discovered(resources []kind.Info) {
	c.change(func() { c.resources, c.known = resources, true })
}

// change applies a change and passes a new plan to the keepers, if server and resources
// are known.
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
