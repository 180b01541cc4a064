package metacontroller

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/util/workqueue"

	"gopf.dev/gopf/client"
)

// flushInterval is the longest time between two syncs of a parent.
const flushInterval = 30 * time.Minute

// environment has the things that controllers need. All but the client and the log are shared.
type environment struct {
	api       client.Client
	dynamic   dynamic.Interface
	resources *resources
	log       *slog.Logger
	transport http.RoundTripper
	workers   int
	tags      *tags
	mark      string // of the reducer

	fieldManager string // of server-side apply; empty means dynamic apply
}

// controller runs one CompositeController or DecoratorController.
type controller struct {
	env       environment
	composite bool
	name      string
	finalizer string
	object    *unstructured.Unstructured // the resource
	requested map[string]any             // its form in requests
	spec      Spec
	parents   []parents
	children  map[string]child // by kind
	rolling   bool
	sync      *hook
	finalize  *hook
	customize *hook
	queue     workqueue.TypedRateLimitingInterface[key]
	share     gate // of all syncs
	large     gate // of syncs with large objects

	kept keptRules

	mu        sync.Mutex
	sources   map[string]*source     // by group, version and plural
	applied   map[string]appliedForm // of the children that exist
	written   map[key]write          // last writes of parents
	synced    map[key]time.Time      // ends of the last syncs
	selectors map[types.UID]parsed   // of the parents
	warned    map[key]time.Time      // of warnings about too large objects
	stop      <-chan struct{}
	running   sync.WaitGroup // of watches

	relating  sync.Mutex
	relations map[string]*relation
}

// parents is a declared resource of parents.
type parents struct {
	resource
	matcher
	ignoreStatus bool
	paths        []string // of revisions
}

// key names a parent: the index of its resource, the namespace and the name.
type key struct {
	resource        int
	namespace, name string
}

// newController checks a controller resource and prepares it.
func newController(ctx context.Context, env environment, object *unstructured.Unstructured) (*controller, error) {
	c := &controller{
		env: env, composite: object.GetKind() == "CompositeController", name: object.GetName(), object: object, requested: Requested(object),
		children: map[string]child{}, sources: map[string]*source{}, applied: map[string]appliedForm{}, written: map[key]write{}, synced: map[key]time.Time{}, relations: map[string]*relation{},
	}
	if err := convert(object.Object["spec"], &c.spec); err != nil {
		return nil, err
	}
	declared, children := c.spec.Resources, c.spec.Attachments
	c.finalizer = "metacontroller.io/decoratorcontroller-" + c.name
	if c.composite {
		children, c.finalizer = c.spec.ChildResources, "metacontroller.io/compositecontroller-"+c.name
		if c.spec.ParentResource == nil {
			return nil, errors.New("no parentResource defined")
		}
		declared = []ParentResource{*c.spec.ParentResource}
	}
	if c.spec.Hooks == nil {
		return nil, errors.New("no hooks defined")
	}
	if err := c.checkFinalizer(); err != nil {
		return nil, err
	}
	for _, d := range declared {
		if err := c.addParents(d); err != nil {
			return nil, err
		}
	}
	for _, d := range children {
		r, err := env.resources.byName(d.APIVersion, d.Resource)
		if err != nil {
			return nil, fmt.Errorf("can't create informer for child resource: %w", err)
		}
		declared := child{resource: r}
		if d.UpdateStrategy != nil {
			declared.strategy = *d.UpdateStrategy
		}
		c.children[r.key()] = declared
		c.rolling = c.rolling || c.composite && declared.rolling()
	}
	for _, h := range []struct {
		kind string
		from *Hook
		to   **hook
	}{{"sync", c.spec.Hooks.Sync, &c.sync}, {"finalize", c.spec.Hooks.Finalize, &c.finalize}, {"customize", c.spec.Hooks.Customize, &c.customize}} {
		made, err := newHook(ctx, h.kind, h.from, c.spec.EndpointConfigs, env.api, env.transport, env.tags)
		if err != nil {
			return nil, err
		}
		*h.to = made
	}
	return c, nil
}

func (c *controller) addParents(d ParentResource) error {
	r, err := c.env.resources.byName(d.APIVersion, d.Resource)
	if err != nil {
		if !c.composite {
			return fmt.Errorf("can't find resource %q in apiVersion %q: %w", d.Resource, d.APIVersion, err)
		}
		return err
	}
	if c.composite && !r.status {
		return fmt.Errorf("the parent resource %s in %s does not have subresource 'Status' enabled", d.Resource, d.APIVersion)
	}
	m, err := d.matcher()
	if err != nil {
		return err
	}
	p := parents{resource: r, matcher: m, ignoreStatus: d.IgnoreStatusChanges, paths: []string{"spec"}}
	if d.RevisionHistory != nil && len(d.RevisionHistory.FieldPaths) > 0 {
		p.paths = d.RevisionHistory.FieldPaths
	}
	c.parents = append(c.parents, p)
	return nil
}

// run serves the controller until the context ends. ready is called when the caches are
// filled.
func (c *controller) run(ctx context.Context, ready func()) {
	c.queue = newQueue()
	c.share, c.large = gate{each: c.part(c.env.workers)}, gate{limit: largeSyncs, each: c.part(largeSyncs)}
	c.stop = ctx.Done()
	defer func() {
		c.queue.ShutDown()
		c.running.Wait()
		for _, h := range []*hook{c.sync, c.finalize, c.customize} {
			h.end()
		}
	}()
	for i, p := range c.parents {
		if !c.watch(ctx, p.resource, c.parentEvents(i)) {
			return
		}
	}
	for _, kind := range sortedKeys(c.children) {
		if !c.watch(ctx, c.children[kind].resource, c.childEvents(c.children[kind].resource)) {
			return
		}
	}
	if c.rolling && !c.watch(ctx, revisionResource, c.childEvents(revisionResource)) {
		return
	}
	ready()
	var workers sync.WaitGroup
	for range c.env.workers {
		workers.Go(func() {
			for c.next(ctx) {
			}
		})
	}
	workers.Go(func() { c.tick(ctx) })
	<-ctx.Done()
	c.queue.ShutDown()
	workers.Wait()
}

// tick queues all parents periodically.
func (c *controller) tick(ctx context.Context) {
	period := flushInterval
	if s := c.spec.ResyncPeriodSeconds; s != nil {
		period = min(period, max(time.Second, time.Duration(*s)*time.Second))
	}
	ticker := time.NewTicker(period)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			for i := range c.parents {
				for _, p := range c.stored(c.parents[i].resource) {
					c.queue.Add(key{i, p.GetNamespace(), p.GetName()})
				}
			}
		}
	}
}

// next handles one parent of the queue. It returns false at the end.
func (c *controller) next(ctx context.Context) bool {
	k, shutdown := c.queue.Get()
	if shutdown {
		return false
	}
	defer c.queue.Done(k)
	if !c.share.enter(k) {
		return true // leave queues the parent
	}
	defer c.leave(&c.share, k)
	slot := c.large.has(k)
	defer func() {
		if slot {
			c.leave(&c.large, k)
		}
	}()
	if ctx.Err() != nil {
		return true // the queue is shut down; its rest is dropped
	}
	parent := c.parent(k)
	if parent == nil {
		c.queue.Forget(k)
		c.mu.Lock()
		delete(c.written, k)
		delete(c.synced, k)
		delete(c.warned, k)
		c.mu.Unlock()
		if c.customize != nil {
			c.kept.drop(k, c.customize.version)
		}
		for _, h := range []*hook{c.sync, c.finalize, c.customize} {
			h.forget(c.parents[k.resource].kind + "/" + k.namespace + "/" + k.name)
		}
		return true
	}
	if c.stale(k, parent) {
		c.queue.AddAfter(k, stalePause)
		return true
	}
	if left := c.pause(k); left > 0 {
		c.queue.AddAfter(k, left)
		return true
	}
	err := safely(func() error { return c.handle(ctx, k, parent, slot) })
	if errors.Is(err, errLarge) {
		if slot = c.large.enter(k); !slot {
			return true // leave queues the parent
		}
		err = safely(func() error { return c.handle(ctx, k, parent, slot) })
	}
	c.mu.Lock()
	c.synced[k] = time.Now()
	c.mu.Unlock()
	switch pause, isBusy := busy(err); {
	case err == nil:
		c.queue.Forget(k)
	case errors.As(err, new(*tooLargeError)): // the event of a change starts the next sync
		c.queue.Forget(k)
		if c.mayWarn(k) {
			c.env.log.Warn("A parent is not synced because of large objects.", "controller", c.name, "parent", describe(parent), "error", err)
			c.env.api.Event(client.About(parent), client.Warning, "SyncError", "Sync error: %v", err)
		}
	case ctx.Err() != nil: // the controller stops
	case isBusy:
		c.queue.AddAfter(k, pause)
	case errors.Is(err, errStandby): // the controller stops soon, or the Lease is renewed
		c.queue.AddAfter(k, standbyPause)
	default:
		attrs := []any{"controller", c.name, "parent", describe(parent), "error", err}
		if p := (*panicError)(nil); errors.As(err, &p) {
			attrs = append(attrs, "stack", string(p.stack))
		}
		c.env.log.Warn("The sync of a parent failed.", attrs...)
		c.env.api.Event(client.About(parent), client.Warning, "SyncError", "Sync error: %v", err)
		c.queue.AddRateLimited(k)
	}
	return true
}

// echoPause is the least delay between two syncs of a parent. The events of the writes of a
// sync arrive in that time, and become one sync.
const echoPause = 20 * time.Millisecond

// pause returns the rest of the delay after the last sync of a parent.
func (c *controller) pause(k key) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return echoPause - time.Since(c.synced[k])
}

// longestDelay is the limit of the delays that hooks ask for. A larger number of seconds may not fit
// into a [time.Duration].
const longestDelay = 365 * 24 * time.Hour

// again queues a parent after the seconds of a response.
func (c *controller) again(k key, seconds float64) {
	if seconds > 0 {
		c.queue.AddAfter(k, time.Duration(min(seconds, longestDelay.Seconds())*float64(time.Second)))
	}
}

// leave gives a slot back, and queues the parent that gets it.
func (c *controller) leave(g *gate, k key) {
	if next, ok := g.leave(k); ok {
		c.queue.Add(next)
	}
}

// handle syncs a cached parent. slot reports that the sync may read large objects.
func (c *controller) handle(ctx context.Context, k key, cached *unstructured.Unstructured, slot bool) error {
	p := c.parents[k.resource]
	selected, held := p.matches(cached), slices.Contains(cached.GetFinalizers(), c.finalizer)
	if !selected && !held {
		return nil
	}
	s := &step{controller: c, key: k, of: p, slot: slot}
	parent, err := s.whole(ctx, p.resource, cached)
	if err != nil || parent == nil {
		return err
	}
	if parent == cached {
		parent = cached.DeepCopy()
	}
	parent, err = c.hold(ctx, p.resource, parent, held)
	if err != nil || parent == nil {
		return err
	}
	c.wrote(k, parent)
	s.parent, s.finalizing = parent, c.finalize != nil && (parent.GetDeletionTimestamp() != nil || !selected)
	if c.composite {
		return s.compose(ctx)
	}
	return s.decorate(ctx)
}
