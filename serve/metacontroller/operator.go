package metacontroller

import (
	"context"
	"errors"
	"net/http"
	"reflect"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/client"
)

// Options are the settings of the controllers.
type Options struct {
	// AllowKinds restricts the resources that controllers may name; see [Allowed].
	AllowKinds []string
	// Target selects the controller resources by labels. Nil means all.
	Target labels.Selector
	// Workers is the number of parents that a controller syncs at a time; 5 if zero.
	Workers int
	// Discovery is the lifetime of cached lists of the cluster's resources; 30 s if zero.
	Discovery time.Duration
	// ServerSide is the field manager for children of server-side apply. Without it, children
	// are merged by the annotation [LastApplied].
	ServerSide string
	// Transport replaces the network for calls of hooks, in tests.
	Transport http.RoundTripper
}

// defaultDiscovery is the lifetime of cached lists of resources.
const defaultDiscovery = 30 * time.Second

// Delays between attempts to start a controller.
const (
	firstStart = time.Second
	lastStart  = 30 * time.Second
)

// Declare declares the handlers of the controller resources. The controller of a resource is
// a daemon of that resource: it stops when the resource is deleted or is no longer a target,
// when the operator pauses or stops, and before another replica becomes the leader.
func Declare(op *gopf.Operator, o Options) {
	if o.Workers <= 0 {
		o.Workers = 5
	}
	if o.Discovery <= 0 {
		o.Discovery = defaultDiscovery
	}
	m := &manager{options: o, busy: map[string]chan struct{}{}}
	for _, plural := range []string{"compositecontrollers", "decoratorcontrollers"} {
		r := op.Resource(Group + "/" + Version + "/" + plural)
		r.OnEvent("metacontroller", note)
		// The daemon is optional because Metacontroller sets no finalizer on controller resources.
		r.When(m.targets).Daemon("controller", m.serve, gopf.Optional())
	}
}

// manager has the state that all controllers share.
type manager struct {
	options Options

	mu   sync.Mutex
	env  *environment
	busy map[string]chan struct{} // by kind and name of running controllers; closed at their end
}

// targets reports whether a controller resource is a target.
func (m *manager) targets(c *gopf.Candidate[gopf.Unstructured]) bool {
	return m.options.Target == nil || m.options.Target.Matches(labels.Set(c.Object.GetLabels()))
}

// note passes the newest version of a controller resource to its daemon.
func note(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
	if e.Type != "DELETED" {
		gopf.Memo[newest](e).set(e.Object.DeepCopy())
	}
	return nil
}

// serve runs the controller of a resource until the context ends. A change of the spec
// restarts the controller; other changes do nothing.
func (m *manager) serve(ctx context.Context, d *gopf.Daemon[gopf.Unstructured]) error {
	leave, ok := m.enter(ctx, d.Object.GetKind()+"/"+d.Object.GetName())
	if !ok {
		return nil
	}
	defer leave()
	env, err := m.environment(d.API)
	if err != nil {
		return err
	}
	env.api, env.log = d.API, d.Log
	known := gopf.Memo[newest](d)
	for ctx.Err() == nil {
		object, _ := known.get()
		if object == nil {
			object = d.Object
		}
		running, stop := context.WithCancel(ctx)
		var controller sync.WaitGroup
		controller.Go(func() { start(running, env, object) })
		changed := known.differs(ctx, object.Object["spec"])
		cause := context.Cause(ctx)
		reported := changed || errors.Is(cause, gopf.ErrDeleted) || errors.Is(cause, gopf.ErrUnmatched)
		if reported {
			d.Event(client.Normal, "Stopping", "Stopping controller: %s", object.GetName())
		}
		stop()
		controller.Wait()
		if reported {
			d.Event(client.Normal, "Stopped", "Stopped controller: %s", object.GetName())
		}
	}
	return nil
}

// enter waits until no controller of the kind and name runs: that of a deleted resource may
// still be stopping. It reports false if the context ends first.
func (m *manager) enter(ctx context.Context, name string) (leave func(), ok bool) {
	for {
		m.mu.Lock()
		before, taken := m.busy[name]
		if !taken {
			own := make(chan struct{})
			m.busy[name] = own
			m.mu.Unlock()
			return func() {
				m.mu.Lock()
				delete(m.busy, name)
				m.mu.Unlock()
				close(own)
			}, true
		}
		m.mu.Unlock()
		select {
		case <-ctx.Done():
			return nil, false
		case <-before:
		}
	}
}

// newest is the newest version of a controller resource. It is safe for concurrent use.
type newest struct {
	mu      sync.Mutex
	object  *unstructured.Unstructured
	changed chan struct{} // closed by the next set; nil means that nothing waits
}

func (n *newest) set(object *unstructured.Unstructured) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.object = object
	if n.changed != nil {
		close(n.changed)
		n.changed = nil
	}
}

// get returns the newest version, and a channel that is closed when it is replaced. nil means
// that there is no version.
func (n *newest) get() (*unstructured.Unstructured, <-chan struct{}) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.changed == nil {
		n.changed = make(chan struct{})
	}
	return n.object, n.changed
}

// differs waits until the newest version has another spec. It reports false if the context
// ends first.
func (n *newest) differs(ctx context.Context, spec any) bool {
	for {
		object, changed := n.get()
		if object != nil && !reflect.DeepEqual(object.Object["spec"], spec) {
			return true
		}
		select {
		case <-ctx.Done():
			return false
		case <-changed:
		}
	}
}

// environment returns the things that all controllers share. Each controller sets its client
// and its log.
func (m *manager) environment(api client.Client) (environment, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.env != nil {
		return *m.env, nil
	}
	config, mark := api.RESTConfig(), newMark()
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return &reducer{next, mark} })
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return environment{}, err
	}
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return environment{}, err
	}
	m.env = &environment{
		dynamic: dyn, transport: m.options.Transport, workers: m.options.Workers, fieldManager: m.options.ServerSide, tags: newTags(keptResponses), mark: mark,
		resources: &resources{discovery: disc, allow: m.options.AllowKinds, age: m.options.Discovery, known: map[string]group{}},
	}
	return *m.env, nil
}

// start runs a controller until the context ends. If the controller cannot be created, start
// retries, because the cause may be a missing Secret or definition.
func start(ctx context.Context, env environment, object *unstructured.Unstructured) {
	about := client.About(object)
	for delay := firstStart; ; delay = min(2*delay, lastStart) {
		env.api.Event(about, client.Normal, "Starting", "Starting controller: %s", object.GetName())
		var c *controller
		err := safely(func() (err error) {
			c, err = newController(ctx, env, object)
			return err
		})
		if err == nil {
			c.run(ctx, func() { env.api.Event(about, client.Normal, "Started", "Started controller: %s", object.GetName()) })
			return
		}
		if ctx.Err() != nil {
			return
		}
		env.log.Warn("The controller cannot be started.", "controller", object.GetName(), "error", err, "delay", delay)
		env.api.Event(about, client.Warning, "CreateError", "Cannot create new controller: %v", err)
		select {
		case <-ctx.Done():
			return
		case <-time.After(delay):
		}
	}
}
