package engine

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/crew"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/lease"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/internal/vitals"
	"gopf.dev/gopf/kind"
)

// server is a running operator. It has a controller for each resource that is served
// now, and the namespaces in which they are served.
type server struct {
	Config
	client   *kube.Client
	clock    *controller.Clock
	daemons  *alarm.Clock[*daemon.Task]
	barrier  *index.Gate // opens when all indices are filled
	poster   *recorder.Poster
	control  *admission.Control // nil means that there are no admission handlers
	vitals   *vitals.Vitals
	paths    pathChecks
	places   *placements
	stopping chan struct{} // closed when no new turn may start
	stopped  chan struct{} // closed when all handlers have stopped
	evicted  chan struct{} // closed when the lease is lost during shutdown

	writeGate *lease.Gate // open while this replica is the leader
	entry     *execute.Entrance
	notices   *process.Notices

	shared controller.Config // of all controllers
	owned  *owned            // the watches of children

	// served is a copy of the values of controllers, to be read without the lock.
	served   atomic.Pointer[[]*controller.Controller]
	retiring crew.Crew // controllers and watches that are shutting down

	// Do not wait for handlers under this lock, nor for watches that wait for
	// handlers: the shutdown needs the lock.
	mu          sync.Mutex
	cluster     []kind.Info // all resources of the cluster
	agreed      []kind.Info // the last version of cluster without ambiguous handlers
	controllers map[schema.GroupVersionResource]*controller.Controller
	leaving     map[string]int        // the number of retiring controllers by name
	ended       bool                  // the operator is stopping: start no controllers
	namespaces  map[string]bool       // "" means all
	told        loglimit.Once[string] // current problems
	noted       loglimit.Once[string] // notes
	pauses      map[string]string     // the reasons of the current pauses, by requester
	standby     bool                  // this replica is not the leader

	paused  atomic.Bool   // pauses is not empty
	resumed chan struct{} // signaled when the last pause ends
	moved   chan struct{} // signaled when the resources or namespaces change
	crowded chan struct{} // signaled when decideReach must decide
}

func newServer(c Config, client *kube.Client, v *vitals.Vitals) *server {
	s := &server{
		Config: c, client: client, vitals: v, stopping: make(chan struct{}), stopped: make(chan struct{}), evicted: make(chan struct{}), standby: c.Election.Enabled,
		controllers: map[schema.GroupVersionResource]*controller.Controller{}, leaving: map[string]int{}, namespaces: map[string]bool{},
		pauses: map[string]string{}, resumed: make(chan struct{}, 1), moved: make(chan struct{}, 1),
		crowded: make(chan struct{}, 1),
	}
	s.clock = controller.NewClock()
	s.daemons = alarm.New((*daemon.Task).Ring)
	s.barrier = newBarrier(c)
	s.entry = s.entrance()
	s.notices = &process.Notices{}
	s.paths = newPathChecks(c, client)
	s.places = newPlacements(c, client)
	s.Posting.Posted, s.Posting.Dropped = v.Metrics().EventPosted, v.Metrics().EventsDropped
	s.poster = recorder.New(client.Ungated(), s.Posting)
	if len(c.Namespaces) == 0 {
		s.namespaces[""] = true
	}
	if names, fixed := c.Namespaces.Fixed(); fixed {
		for _, name := range names {
			s.namespaces[name] = true
		}
	}
	s.shared = s.controllerConfig()
	s.owned, s.shared.Children = s.newOwned()
	return s
}

// serve starts and stops resources to match those of the cluster. work is the parent
// of the contexts of handlers. ctx ends the requests for their schemas.
func (s *server) serve(ctx, work context.Context, cluster []kind.Info) {
	inStatus := s.places.find(ctx, s.Handlers, cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.places.update(inStatus)
	}
	moved := !reflect.DeepEqual(s.cluster, cluster) // periodic discovery usually finds no change
	s.cluster = cluster
	if s.control != nil {
		s.control.Discovered(cluster)
	}
	if moved {
		s.move()
	}
	s.checkPaths()
	s.arrange(work)
}

// arrange starts new resources and retires those that are gone or changed. The caller
// must hold s.mu.
func (s *server) arrange(work context.Context) {
	if s.ended {
		return
	}
	plan := discovery.Match(s.Handlers, s.cluster)
	problems := plan.Problems
	if plan.Conflict != nil { // a new CRD made a handler ambiguous: keep the resources of before
		problems = append(problems, plan.Conflict.Error())
		plan = discovery.Match(s.Handlers, s.agreed)
	} else {
		s.agreed = s.cluster
	}
	for _, p := range s.told.Update(problems) {
		s.Log.Warn("Not everything can be served: " + p)
	}
	for _, n := range plan.Notes { // not problems: health and metrics do not include them
		if s.noted.First(n) {
			s.Log.Info("Two handlers share an id: " + n)
		}
	}
	for gvr, c := range s.controllers {
		served, stays := plan.Kinds[gvr]
		switch {
		case !stays:
			s.Log.Info("The resource is gone from the cluster and is no longer served.", "resource", c.Info().String())
		case !c.Serves(served) || !s.places.fits(c):
			s.Log.Info("The resource has changed; it is restarted.", "resource", served.Info.String())
		default:
			continue
		}
		delete(s.controllers, gvr)
		s.retire(work, c)
	}
	for gvr, served := range plan.Kinds {
		if s.controllers[gvr] == nil {
			if s.leaving[controller.NameOf(served.Info)] > 0 {
				continue // two processors must not handle the same objects
			}
			s.controllers[gvr] = controller.New(work, s.places.config(s.shared, served.Info), served, s.working())
		}
		s.follow(work, s.controllers[gvr])
	}
	served := slices.Collect(maps.Values(s.controllers))
	s.served.Store(&served)
	s.followChildren(work)
	if len(s.leaving) == 0 { // otherwise more resources follow
		s.barrier.Synced(resources)
	}
}

// follow starts the missing watches of a controller and ends those of namespaces that
// are not served. Until the replica works, it starts watches only for indices. The
// caller must hold s.mu.
func (s *server) follow(work context.Context, c *controller.Controller) {
	if s.working() || c.Indexed() {
		c.Follow(work, s.namespaces)
	}
}

// retire stops a controller whose resource is gone or must be restarted. It does not
// wait. Only after its handlers have ended may another controller serve the same
// objects, for example in another version. This keeps two processors from handling an
// object at the same time, and the removal from indices comes before the new entries.
// The caller must hold s.mu.
func (s *server) retire(work context.Context, c *controller.Controller) {
	s.leaving[c.Name()]++
	s.retiring.Go(func() { c.Retire(func() { s.succeed(work, c) }) })
}

// succeed starts the controllers that waited for the end of former, and removes former
// from the index barrier and the metrics unless a successor has the same name.
func (s *server) succeed(work context.Context, former *controller.Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	name := former.Name()
	if s.leaving[name]--; s.leaving[name] == 0 {
		delete(s.leaving, name)
	}
	s.arrange(work)
	current := map[string]bool{}
	named := false
	for _, c := range s.controllers {
		named = named || c.Name() == name
		for _, source := range c.Sources() {
			current[source] = true
		}
	}
	for _, source := range former.Sources() {
		if !current[source] {
			s.barrier.Drop(source)
		}
	}
	if !named && !s.ended {
		s.vitals.Metrics().Forget(name)
	}
}

// controllerConfig returns what all controllers share.
func (s *server) controllerConfig() controller.Config {
	c := controller.Config{
		Client: s.client, Cluster: s.forHandlers(), Daemons: s.Daemons, Indices: s.Indices, Namespaces: s.Namespaces,
		Stream: s.Stream, Process: s.Process, Log: s.Log,
		ExitTimeout: s.ExitTimeout, Polling: s.Polling, WorkerLimit: s.WorkerLimit, Backlog: s.Backlog,
		Post: s.poster.Post, PostFrom: s.Posting.Level,
		Clock: s.clock, DaemonClock: s.daemons, Barrier: s.barrier, Budget: controller.NewBudget(),
		Modest:   controller.NewModestBudget(debug.SetMemoryLimit(-1)), // which only returns the limit
		Entrance: s.entry, Notices: s.notices, Vitals: s.vitals,
		Ask: s.ask, Paused: s.paused.Load, Stopping: s.stopping, Go: s.retiring.Go,
	}
	if s.Posting.Enabled && s.Posting.Loggers {
		c.PostLog = slog.New(recorder.FromLogs(s.Log.Handler(), s.Posting.Level, s.poster.Post))
	}
	return c
}

// Wake calls delayed handlers of an object now. No ids means all handlers. Unknown
// objects are ignored.
func (s *server) Wake(of kind.Selector, namespace, name string, ids []string) {
	s.eachServed(of, func(c *controller.Controller) { c.Wake(namespace, name, ids) })
}

// WakeOwner calls delayed handlers of the owner of an object in the namespace now. Owner
// references may be forged, so the uid must be that of an object in the same namespace or
// of a cluster-scoped one.
func (s *server) WakeOwner(of kind.Selector, namespace, uid string) {
	s.eachServed(of, func(c *controller.Controller) { c.WakeOwner(namespace, uid) })
}

// eachServed calls do for the served resources that the selector selects.
func (s *server) eachServed(of kind.Selector, do func(*controller.Controller)) {
	served := s.served.Load()
	if served == nil {
		return
	}
	infos := make([]kind.Info, len(*served))
	for i, c := range *served {
		infos[i] = c.Info()
	}
	for _, info := range of.Select(infos) {
		for _, c := range *served {
			if c.Info().GVR() == info.GVR() {
				do(c)
			}
		}
	}
}
