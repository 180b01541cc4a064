package engine

import (
	"log/slog"
	"runtime/debug"
	"sync"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/apiclient"
	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/history"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/lease"
	"gopf.dev/gopf/internal/owned"
	"gopf.dev/gopf/internal/pathcheck"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/serving"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/internal/turnstile"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// operator is a running operator: its parts, and the state of its life.
type operator struct {
	Config
	client  *kube.Client
	clock   *controller.Clock
	daemons *alarm.Clock[*daemon.Task]
	barrier *index.Gate // opens when all indices are filled
	poster  *recorder.Poster
	control *admission.Control // nil means that there are no admission handlers
	vitals  *vitals.Vitals
	paths   pathcheck.Checks
	lookups *apiclient.Discoveries

	controllers *serving.Controllers
	children    *owned.Children

	writeGate *lease.Gate // open while this replica is the leader
	entry     *execute.Entrance
	history   *history.Ring // nil means that there is no page
	notices   *process.Notices

	stopping chan struct{} // closed when no new turn may start
	stopped  chan struct{} // closed when all handlers have stopped
	evicted  chan struct{} // closed when the lease is lost during shutdown
	resumed  chan struct{} // signaled when the last pause ends
	moved    chan struct{} // signaled when the resources or namespaces change

	mu     sync.Mutex
	pauses map[string]string // the reasons of the current pauses, by requester
}

// newOperator connects the parts of an operator. Nothing runs yet. writes is the write
// gate of the client.
func newOperator(c Config, client *kube.Client, v *vitals.Vitals, writes *lease.Gate) *operator {
	op := &operator{
		Config: c, client: client, vitals: v, writeGate: writes,
		clock: controller.NewClock(), daemons: alarm.New((*daemon.Task).Ring),
		barrier: serving.NewBarrier(len(c.Indices) > 0, c.Namespaces),
		paths:   pathcheck.New(client, c.Log), notices: &process.Notices{},
		stopping: make(chan struct{}), stopped: make(chan struct{}), evicted: make(chan struct{}),
		resumed: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		pauses: map[string]string{},
	}
	op.lookups = &apiclient.Discoveries{Discover: client.Reserved(forLookups).Discover, Stopping: op.stopping}
	op.entry = op.entrance()
	if c.Insight != "" {
		op.history = history.New()
	}
	op.Posting.Posted, op.Posting.Dropped = v.Metrics().EventPosted, v.Metrics().EventsDropped
	// A limit of events per namespace, which a tenant may reach, must not slow down other requests.
	op.poster = recorder.New(client.Ungated().Reserved(1), op.Posting)
	op.children = op.newChildren()
	op.controllers = serving.New(serving.Config{
		Shared: op.sharedConfig(), Handlers: c.Handlers, Name: c.Name, Standby: c.Election.Enabled, ScanningDisabled: c.ScanningDisabled, Withheld: op.awaitsPeering,
		Places: placement.New(c.Process.Progress, client, c.Log), Children: op.children,
		Discovered: op.discovered, Moved: op.move,
	})
	return op
}

// newChildren returns the children of the reconcile handlers.
func (op *operator) newChildren() *owned.Children {
	return owned.New(owned.Config{
		Name: op.Name, Handlers: op.Handlers, Client: op.client, Stream: op.Stream, Log: op.Log,
		Cluster: op.cluster, Lookups: op.lookups, Has: op.paths.Has, SecretKey: op.Process.SecretKey,
		Wake:        func(owner string, of kind.Info, namespace string) { op.controllers.WakeOwned(owner, of, namespace) },
		WakeWatched: func(owner, handler string) { op.controllers.WakeWatched(owner, handler) },
		MemoryLimit: memoryLimit(),
		Listed:      func(of kind.Info) { op.controllers.WakeOwners(of) },
		Observe: func(config *stream.Config) (func(stream.Event, func(stream.Event)), func()) {
			pulse, end := op.vitals.Follow(config, nil)
			return pulse.Deliver, end
		},
	})
}

// sharedConfig returns what all controllers share.
func (op *operator) sharedConfig() controller.Config {
	c := controller.Config{
		Client: op.client, Cluster: op.forHandlers(), Daemons: op.Daemons, Indices: op.Indices, Namespaces: op.Namespaces,
		Stream: op.Stream, Process: op.Process, Log: op.Log,
		ExitTimeout: op.ExitTimeout, Polling: op.Polling, WorkerLimit: op.WorkerLimit, Backlog: op.Backlog,
		Post: op.poster.Post, PostFrom: op.Posting.Level,
		Clock: op.clock, DaemonClock: op.daemons, Barrier: op.barrier,
		Heavy: &process.HeavyWrites{}, Reads: &turnstile.Gate{},
		Children: controller.Children{Runner: op.children.Runner(), Listed: op.children.Listed, Conditions: op.children.Conditions, References: op.children.References()},
		Entrance: op.entry, Notices: op.notices, Vitals: op.vitals, History: op.history, Stopping: op.stopping,
	}
	c.LimitMemory(memoryLimit())
	if op.Posting.Enabled && op.Posting.Loggers {
		c.PostLog = slog.New(recorder.FromLogs(op.Log.Handler(), op.Posting.Level, op.poster.Post))
	}
	return c
}

// memoryLimit returns the soft memory limit of the process. It is huge if there is none.
func memoryLimit() int64 { return debug.SetMemoryLimit(-1) } // which only returns it

// cluster returns the resources of the last discovery.
func (op *operator) cluster() []kind.Info { return op.controllers.Cluster() }

// discovered passes the resources of the cluster to the parts that need them. It does not
// block.
func (op *operator) discovered(cluster []kind.Info) {
	op.lookups.Forget()
	if op.control != nil {
		op.control.Discovered(cluster)
	}
	op.paths.Request(op.Handlers, cluster)
}

// move signals a change of the served resources or namespaces: permissions are checked
// again, and meetPeers looks for new peerings.
func (op *operator) move() {
	op.vitals.Recheck()
	select {
	case op.moved <- struct{}{}:
	default:
	}
}
