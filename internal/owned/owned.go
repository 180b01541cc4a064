// Package owned has the children of all reconcile handlers: which watches they need in
// the cluster as it is now, which permissions, and whether owners can have conditions.
package owned

import (
	"context"
	"log/slog"
	"sync/atomic"

	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/internal/reconcile"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Config configures [Children].
type Config struct {
	Name     string      // of the operator
	Handlers handler.Set // of all families
	Client   *kube.Client
	Stream   stream.Config
	Log      *slog.Logger

	// SecretKey is the key of the digests of values of Secrets; see [reconcile.Runner].
	SecretKey []byte

	// Cluster returns the resources of the last discovery.
	Cluster func() []kind.Info
	// Lookups are the discoveries of resources that are not among them.
	Lookups *apiclient.Discoveries
	// Has reports for each path whether the schema of a resource has it.
	Has func(ctx context.Context, of kind.Info, paths ...[]string) ([]bool, error)
	// Wake is called when a child of the owner has changed, with the namespace of the
	// child. It must not block for long.
	Wake func(owner string, of kind.Info, namespace string)
	// WakeWatched is called when an object has changed that the handler of the owner refers
	// to. It must not block for long.
	WakeWatched func(owner, handler string)
	// MemoryLimit is the memory limit of the process, in bytes. It may be huge.
	MemoryLimit int64
	// Listed is called when the children of a kind are listed.
	Listed func(of kind.Info)
	// Observe adds a watch to the health of the operator; see [childwatch.Config].
	Observe func(*stream.Config) (deliver func(stream.Event, func(stream.Event)), end func())
}

// Children has the watches of children. It does nothing if no handler declares children.
// Follow, Pause and Stop must not be called concurrently.
type Children struct {
	config   Config
	handlers handler.Set
	runner   *reconcile.Runner
	watches  *childwatch.Watches
	refs     *childwatch.References
	// wanted has the watches that each handler needs. nil means that none may run now.
	wanted atomic.Pointer[plan]

	conditions conditions
}

// New returns the children of the reconcile handlers. No watch runs until Follow.
func New(config Config) *Children {
	c := &Children{config: config, handlers: config.Handlers.Of(handler.Reconciles)}
	if len(c.handlers) == 0 {
		return c
	}
	client := config.Client.Derive(func(opts *kube.Options) { opts.ManagedFields = true })
	store := childwatch.NewStore(config.Name, config.Stream.Shared.Mark)
	c.refs = childwatch.NewReferences(config.WakeWatched, config.MemoryLimit)
	c.watches = childwatch.NewWatches(childwatch.Config{
		References: c.refs, Plain: config.Client,
		Store: store, Client: client, Stream: config.Stream, Label: config.Name, Log: config.Log,
		Wake: config.Wake, Listed: config.Listed, Observe: config.Observe,
	})
	c.runner = &reconcile.Runner{Objects: &apiclient.Objects{API: client, Known: config.Cluster, Shared: config.Lookups}, Store: store, Name: config.Name, SecretKey: config.SecretKey}
	return c
}

// Runner applies and deletes the children. nil means that no handler declares children.
func (c *Children) Runner() *reconcile.Runner { return c.runner }

// References returns the objects that call handlers although they are no children. nil
// means that no handler declares children.
func (c *Children) References() *childwatch.References { return c.refs }

// Listed reports whether the children of a handler are listed.
func (c *Children) Listed(h *handler.Handler) bool {
	wanted := c.wanted.Load()
	return wanted != nil && c.watches.Complete((*wanted)[h])
}

// Follow starts the missing watches of children in the namespaces, and ends those that
// are not needed. namespaces may have "", which means all.
func (c *Children) Follow(ctx context.Context, cluster []kind.Info, namespaces map[string]bool) {
	if c.watches == nil {
		return
	}
	wanted := planFor(c.handlers, cluster, namespaces)
	c.wanted.Store(&wanted)
	c.watches.Follow(ctx, wanted.all(c.handlers))
}

// Pause ends all watches, and does not wait for them.
func (c *Children) Pause() {
	if c.watches == nil {
		return
	}
	c.wanted.Store(nil)
	c.watches.Follow(context.Background(), nil) // it only ends watches
}

// Stop ends all watches and waits for them.
func (c *Children) Stop() {
	if c.watches != nil {
		c.watches.Stop()
	}
}

// Needs returns the permissions for children in the cluster.
func (c *Children) Needs(cluster []kind.Info) (all []rbac.Need) {
	for _, h := range c.handlers {
		for _, o := range h.Reconcile.Owned {
			for _, info := range o.Of.Select(cluster) {
				all = append(all, rbac.Children(info, h.ID))
			}
		}
		for _, of := range h.Reconcile.Watched {
			for _, info := range of.Select(cluster) {
				all = append(all, rbac.Watched(info, h.ID))
			}
		}
	}
	return all
}
