package metacontroller

import (
	"context"
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

// Declare declares the handlers of the controller resources. They run the controllers until
// the operator stops.
func Declare(op *gopf.Operator, o Options) {
	if o.Workers <= 0 {
		o.Workers = 5
	}
	if o.Discovery <= 0 {
		o.Discovery = defaultDiscovery
	}
	m := &manager{options: o, running: map[string]running{}}
	for _, plural := range []string{"compositecontrollers", "decoratorcontrollers"} {
		op.Resource(Group+"/"+Version+"/"+plural).OnEvent("metacontroller", m.handle)
	}
	op.OnCleanup("metacontroller", func(context.Context, *gopf.Activity) error {
		m.close()
		return nil
	})
}

// manager owns the running controllers.
type manager struct {
	options Options

	mu      sync.Mutex
	closed  bool
	env     *environment
	running map[string]running // by kind and name
	wait    sync.WaitGroup
}

type running struct {
	spec any
	stop context.CancelFunc
	done chan struct{}
}

// handle starts, restarts or stops the controller of a resource. A change of its metadata
// does nothing.
func (m *manager) handle(_ context.Context, e *gopf.WatchEvent[gopf.Unstructured]) error {
	name, object := e.Object.GetKind()+"/"+e.Object.GetName(), e.Object.DeepCopy()
	gone := e.Type == "DELETED" || m.options.Target != nil && !m.options.Target.Matches(labels.Set(object.GetLabels()))
	m.mu.Lock()
	defer m.mu.Unlock()
	old, ok := m.running[name]
	if m.closed || !ok && gone || ok && !gone && reflect.DeepEqual(old.spec, object.Object["spec"]) {
		return nil
	}
	if ok {
		e.Event(client.Normal, "Stopping", "Stopping controller: %s", object.GetName())
		old.stop()
		<-old.done
		delete(m.running, name)
		e.Event(client.Normal, "Stopped", "Stopped controller: %s", object.GetName())
	}
	if gone {
		return nil
	}
	env, err := m.environment(e.API)
	if err != nil {
		return err
	}
	own := *env
	own.log = e.Log
	// The controller lives longer than the call of this handler.
	ctx, stop := context.WithCancel(context.Background())
	r := running{spec: object.Object["spec"], stop: stop, done: make(chan struct{})}
	m.running[name] = r
	m.wait.Go(func() {
		defer close(r.done)
		start(ctx, own, object)
	})
	return nil
}

// environment returns the things that all controllers share. Each controller adds its log.
func (m *manager) environment(api client.Client) (*environment, error) {
	if m.env != nil {
		return m.env, nil
	}
	config := api.RESTConfig()
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, err
	}
	disc, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, err
	}
	m.env = &environment{
		api: api, dynamic: dyn, transport: m.options.Transport, workers: m.options.Workers, fieldManager: m.options.ServerSide,
		resources: &resources{discovery: disc, allow: m.options.AllowKinds, age: m.options.Discovery, known: map[string]group{}},
	}
	return m.env, nil
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

// close stops all controllers and waits for them.
func (m *manager) close() {
	m.mu.Lock()
	m.closed = true
	for _, r := range m.running {
		r.stop()
	}
	m.mu.Unlock()
	m.wait.Wait()
}
