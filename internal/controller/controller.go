// Package controller serves one resource: it watches the objects, queues their turns,
// and keeps their memories, until the resource is retired.
//
// A [Controller] owns one watch goroutine per namespace, or one for all of them, a queue
// that runs the turns of its objects, their daemons, and their memories. It gets everything that the
// controllers of an operator share from its [Config], and does not know the engine.
//
// Read controller.go first. Then follow an event: watch.go and reach.go (the watches),
// turn.go and entry.go (the queue and the turns), memories.go and gone.go (known and deleted
// objects). pause.go keeps turns for the end of a pause, selection.go follows objects that leave
// the label selector, retire.go ends a controller, and costly.go limits the turns of large objects.
package controller

import (
	"context"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/history"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/turnstile"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Config is shared by all controllers of an operator.
type Config struct {
	Client     *kube.Client
	Cluster    handler.API                       // the API that handlers use
	Daemons    map[*handler.Handler]*daemon.Spec // of the daemons and timers
	Indices    map[*handler.Handler]index.Target // of the indexing handlers
	Namespaces discovery.Namespaces              // limits the Namespace objects to serve; empty means all
	Stream     stream.Config                     // the resource, the namespace and the selector are filled in
	Process    process.Config
	Log        *slog.Logger

	ExitTimeout time.Duration // for handlers to return before their contexts are canceled
	Polling     time.Duration // between log lines about daemons that do not stop
	WorkerLimit int           // limits concurrent turns; 0 means no limit
	Backlog     int           // limits the bytes of queued events

	// Post queues a Kubernetes event and does not block. Handlers post events of level
	// PostFrom or higher. PostLog is the logger of handlers whose log lines are posted;
	// nil means that they are not posted.
	Post     func(recorder.Event)
	PostFrom slog.Level
	PostLog  *slog.Logger

	Clock       *Clock                     // of delayed turns
	DaemonClock *alarm.Clock[*daemon.Task] // of daemons and timers
	Barrier     *index.Gate                // opens when all indices are filled
	Budget      *queue.Budget              // of costly turns; see [NewBudget]
	Modest      *queue.Budget              // of modest turns; see [NewModestBudget]
	Held        *queue.Budget              // of the objects of daemons; see [NewHeldBudget]
	Declared    *queue.Budget              // of children and sub-handlers; see [NewDeclaredBudget]
	Crowd       *queue.Crowd               // of running handlers; nil means that their memory has no limit
	Waiting     *queue.Backlog             // of the queues of all controllers; nil means that only each has limits
	Heavy       *process.HeavyWrites       // may be nil
	Reads       *turnstile.Gate            // of objects whose size is not known, by namespace
	Entrance    *execute.Entrance          // every call of a handler passes it
	Children    Children                   // the means of reconcile handlers
	Notices     *process.Notices           // log lines that all controllers share
	Spaces      *process.Spaces            // the pauses of namespaces; nil means that they are not known
	Vitals      *vitals.Vitals             // observes watches and calls
	History     *history.Ring              // of all objects; nil means that there are no timelines

	// Ask requests the decision how a controller with many namespaces watches them; see
	// [Controller.Reach]. It must not block.
	Ask func()

	// Paused reports whether the operator is paused.
	Paused func() bool
	// Stopping is closed when no new turn may start.
	Stopping <-chan struct{}
	// Go runs a function in a goroutine that the shutdown of the operator waits for.
	Go func(func())
}

// Controller is one served resource: its watches, the turns of its objects, and their
// memories.
//
// The methods that start, pause and end it ([Controller.Follow], [Controller.Pause],
// [Controller.Resume], [Controller.Widen], [Controller.Widened], [Controller.Undecided],
// [Controller.Reach], [Controller.Reached], [Controller.Sources], [Controller.Retire] and
// [Controller.Stop]) must not be called concurrently. The other exported methods are safe
// for concurrent use.
type Controller struct {
	config    Config
	client    *kube.Client // with managedFields if a handler needs them
	processor *process.Processor
	served    discovery.Served
	counts    *metrics.Resource // nil means that metrics are disabled
	queue     *queue.Queue[string, entry]
	selector  metalabels.Selector // of the watches; nil means all objects
	types     []*footprint.Type   // of the objects of handlers, for their memory
	put       func(key string, e entry)
	offer     func(key string, e entry) (taken bool)
	take      func(e *process.Event) (taken bool) // handles an event without a turn; see [Controller.skim]
	cancel    context.CancelCauseFunc             // of handlers
	pauses    atomic.Uint32                       // the number of pauses so far; events from before the last one are dropped

	// indexOnly means that the watches only fill indices, and no handler is called.
	indexOnly atomic.Bool

	// For the methods that must not be called concurrently.
	places   map[string]bool   // the served namespaces, even during a pause
	streams  map[string]func() // functions that end the watches, by namespace; they may be called twice
	widening bool              // the watches are being restarted; see [Controller.Widen]
	reach    reach             // how namespaces are watched
	reaching bool              // the watches are being restarted; see [Controller.Reach]
	scope    *stream.Scope     // of the watch of the cluster; nil means that there is none

	refused atomic.Bool // the API server forbids the watch of the cluster

	active sync.Map // maps the keys of objects in a turn to their [*process.Memory]
	// indexed maps the keys of objects to the versions in the indices, while the watches
	// only fill those.
	indexed sync.Map
	leaving sync.Map      // maps the keys of objects that left the selection, until they are released, to their versions
	costly  sync.Map      // maps the keys of large objects to the cost of a turn
	backlog object.Packer // of entries that were shed

	mu         sync.Mutex
	memories   map[string]*process.Memory
	members    members           // the same by namespace
	named      map[string]string // keys by namespace/name; nil until the first lookup
	shared     map[string]bool   // names of several objects, of which at most one exists
	gone       gone
	namespaces map[string]bool // the served namespaces, as in places; nil until they are set
	left       departures      // namespaces that have left the served ones
	missed     missed          // turns that were due during a pause
	unlisted   map[string]bool // namespaces that were not listed since the last pause; "" means all
}

// New returns the controller of a resource. It has no watches yet; see
// [Controller.Follow]. work is the parent of the contexts of handlers. working reports
// whether handlers may be called now; until [Controller.Widen], the controller only
// fills indices otherwise.
func New(work context.Context, config Config, served discovery.Served, working bool) *Controller {
	work, cancel := context.WithCancelCause(work)
	c := &Controller{config: config, client: config.Client, served: served, cancel: cancel, places: map[string]bool{}, streams: map[string]func(){}, types: typesOf(served.Handlers)}
	c.config.Stream.Selector = served.Select
	if served.Managed {
		c.client = config.Client.Derive(func(o *kube.Options) { o.ManagedFields = true })
	}
	changes, background := served.Handlers.Of(handler.Changes), served.Handlers.Of(handler.Background)
	watchers := served.Handlers.Of(handler.Events)
	c.processor = &process.Processor{
		Resource: served.Info, Config: config.Process,
		Handlers: changes, Watchers: watchers,
		Fields: slices.Concat(changes.Fields(), background.Fields(), watchers.Fields()),
		API:    c.client, Cluster: config.Cluster, Log: config.Log, Stopping: config.Stopping, Paused: config.Paused, Pauses: c.pauses.Load,
		Post: config.Post, PostFrom: config.PostFrom, PostLog: config.PostLog, Entrance: config.Entrance, Mark: config.Stream.Shared.Mark,
		Outages: config.Client.Outages(), Heavy: config.Heavy, Notices: config.Notices, Spaces: config.Spaces, Managers: config.Client.Managers,
		Alarm: c.setAlarm,
	}
	if c.counts, c.processor.Observe = config.Vitals.Resource(c.Name(), served.Handlers); c.counts != nil {
		c.processor.Foreign = c.counts.ForeignWrite
	}
	if config.History != nil {
		c.processor.Trail = &trail{config.History, served.Info.Kind == "Secret" && served.Info.Group == ""}
	}
	c.restrict()
	c.processor.Daemons = c.daemonsOf(background)
	c.processor.Reconcile = c.reconcilersOf(served.Handlers.Of(handler.Reconciles))
	c.processor.Indexers = c.indexersOf(served.Handlers.Of(handler.Indexing))
	c.indexOnly.Store(c.processor.Indexers != nil && !working)
	c.open(work)
	c.announce()
	return c
}

// Served returns the resource with its handlers.
func (c *Controller) Served() discovery.Served { return c.served }

// Info returns the resource.
func (c *Controller) Info() kind.Info { return c.served.Info }

// Name returns the name of the resource in metrics and health, such as pods or
// widgets.example.com.
func (c *Controller) Name() string { return NameOf(c.served.Info) }

// NameOf returns the name that a controller of the resource has.
func NameOf(info kind.Info) string { return info.GVR().GroupResource().String() }

// Indexed reports whether the resource has index functions.
func (c *Controller) Indexed() bool { return c.processor.Indexers != nil }

// Serves reports whether the controller can stay as it is: it has the same handlers,
// scope and label selector, and the status subresource has not come or gone.
func (c *Controller) Serves(now discovery.Served) bool {
	return c.served.Info.HasStatus() == now.Info.HasStatus() && c.served.Info.Namespaced == now.Info.Namespaced &&
		c.served.Select == now.Select && c.served.HandOver == now.HandOver && slices.Equal(c.served.Handlers, now.Handlers)
}

// OpenStatus is [process.Config.OpenStatus].
func (c *Controller) OpenStatus() bool { return c.processor.Config.OpenStatus }

// StateInStatus reports whether the state of new objects goes to their status.
func (c *Controller) StateInStatus() bool {
	placed, ok := c.config.Process.Progress.(storage.Placed)
	return ok && placed.InStatus()
}

// Gauges returns the current values for the metrics, except those of the watches.
func (c *Controller) Gauges() metrics.ResourceGauges {
	g := metrics.ResourceGauges{Resource: c.Name()}
	g.Queued, g.QueuedBytes, g.Oldest = c.queue.Depth()
	g.Paused = c.processor.PausedObjects()
	g.Retries, g.OldestRetry = c.config.Clock.Count(func(a Appointment) bool { return a.controller == c })
	if c.processor.Daemons != nil {
		g.Daemons, g.Timers = c.processor.Daemons.Tally()
	}
	return g
}

// Use returns how the handlers use the resource, for the check of permissions.
func (c *Controller) Use() rbac.Use {
	use := rbac.Use{Info: c.Info()}
	for _, h := range c.served.Handlers {
		if h.Family == handler.Changes || h.Family == handler.Background || h.Family == handler.Reconciles {
			use.Write = append(use.Write, h.ID)
		} else {
			use.Look = append(use.Look, h.ID)
		}
	}
	return use
}
