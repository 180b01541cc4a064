package engine

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
)

// server is a running operator. It holds the resources that are served now, and the
// namespaces in which they are served.
type server struct {
	Config
	client   *kube.Client
	clock    *alarm.Clock[appointment]
	daemons  *alarm.Clock[*daemon.Task]
	gate     *index.Gate
	poster   *recorder.Poster
	control  *admission.Control // nil means that there are no admission handlers
	vitals   *vitals
	stopping chan struct{} // closed when no new turn may start
	stopped  chan struct{} // closed when all handlers have stopped
	evicted  chan struct{} // closed when the lease is lost during shutdown

	writeGate *gate // open while this replica is the leader
	entry     *execute.Entrance
	notices   *process.Notices

	// served is a copy of the values of resources, to be read without the lock.
	served   atomic.Pointer[[]*resource]
	retiring crew // resources and watches that are shutting down

	// Do not wait for handlers under this lock, nor for watches that wait for
	// handlers: the shutdown needs the lock.
	mu         sync.Mutex
	cluster    []kind.Info // all resources of the cluster
	agreed     []kind.Info // the last version of cluster without ambiguous handlers
	resources  map[schema.GroupVersionResource]*resource
	leaving    map[string]int    // the number of retiring resources by name
	ended      bool              // the operator is stopping: start no resources
	namespaces map[string]bool   // "" means all
	told       map[string]bool   // problems that are logged already
	noted      map[string]bool   // notes that are logged already
	budget     *queue.Budget     // limits the memory of costly turns
	modest     *queue.Budget     // limits the memory of modest turns
	pauses     map[string]string // the reasons of the current pauses, by requester
	standby    bool              // this replica is not the leader

	paused  atomic.Bool   // pauses is not empty
	resumed chan struct{} // signaled when the last pause ends
	moved   chan struct{} // signaled when the resources or namespaces change
}

// appointment is an object that needs a turn at a set time.
type appointment struct {
	resource *resource
	key      string
}

func newServer(c Config, client *kube.Client, v *vitals) *server {
	s := &server{
		Config: c, client: client, vitals: v, stopping: make(chan struct{}), stopped: make(chan struct{}), evicted: make(chan struct{}), standby: c.Election.Enabled,
		resources: map[schema.GroupVersionResource]*resource{}, leaving: map[string]int{}, namespaces: map[string]bool{}, told: map[string]bool{}, noted: map[string]bool{},
		pauses: map[string]string{}, resumed: make(chan struct{}, 1), moved: make(chan struct{}, 1),
	}
	s.clock = alarm.New(func(a appointment) { a.resource.ring(a.key) })
	s.daemons = alarm.New((*daemon.Task).Ring)
	s.gate = newGate(c)
	s.entry = s.entrance()
	s.notices = &process.Notices{}
	s.budget = &queue.Budget{Size: costlyTurns, Patience: costlyPatience}
	s.modest = modestBudget(debug.SetMemoryLimit(-1)) // which only returns the limit
	s.Posting.Posted, s.Posting.Dropped = v.metrics.EventPosted, v.metrics.EventsDropped
	s.poster = recorder.New(client.Ungated(), s.Posting)
	if len(c.Namespaces) == 0 {
		s.namespaces[""] = true
	}
	if names, fixed := c.Namespaces.Fixed(); fixed {
		for _, name := range names {
			s.namespaces[name] = true
		}
	}
	return s
}

// serve starts and stops resources to match those of the cluster. work is the parent
// of the contexts of handlers.
func (s *server) serve(work context.Context, cluster []kind.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := !reflect.DeepEqual(s.cluster, cluster) // periodic discovery usually finds no change
	s.cluster = cluster
	if s.control != nil {
		s.control.Discovered(cluster)
	}
	if moved {
		s.move()
	}
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
	s.tell(problems)
	s.note(plan.Notes)
	for gvr, r := range s.resources {
		served, stays := plan.Kinds[gvr]
		switch {
		case !stays:
			s.Log.Info("The resource is gone from the cluster and is no longer served.", "resource", r.kind.Resource.String())
		case !r.serves(served):
			s.Log.Info("The resource has changed; it is restarted.", "resource", served.Info.String())
		default:
			continue
		}
		delete(s.resources, gvr)
		s.retire(work, r)
	}
	for gvr, served := range plan.Kinds {
		if s.resources[gvr] == nil {
			if s.leaving[nameOf(served.Info)] > 0 {
				continue // two processors must not handle the same objects
			}
			s.resources[gvr] = s.newResource(work, served)
		}
		s.follow(work, s.resources[gvr])
	}
	served := slices.Collect(maps.Values(s.resources))
	s.served.Store(&served)
	if len(s.leaving) == 0 { // otherwise more resources follow
		s.gate.Synced(resources)
	}
}

// follow starts the missing watches of a resource and ends those of namespaces that
// are not served. Until the replica works, it starts watches only for indices. During
// a pause, it starts none. The caller must hold s.mu.
func (s *server) follow(work context.Context, r *resource) {
	if !s.working() && r.kind.Indexers == nil {
		return
	}
	r.settle(s.namespaces)
	if !s.paused.Load() && !r.widening {
		r.follow(work)
	}
}

// tell logs the problems that are new since the last call.
func (s *server) tell(problems []string) {
	now := map[string]bool{}
	for _, p := range problems {
		if !s.told[p] {
			s.Log.Warn("Not everything can be served: " + p)
		}
		now[p] = true
	}
	s.told = now
}

// note logs each note once. Notes are not problems: health and metrics do not
// include them.
func (s *server) note(notes []string) {
	for _, n := range notes {
		if !s.noted[n] {
			s.noted[n] = true
			s.Log.Info("Two handlers share an id: " + n)
		}
	}
}

func (s *server) newResource(work context.Context, served discovery.Served) *resource {
	work, cancel := context.WithCancelCause(work)
	r := &resource{vitals: s.vitals, config: s.Config, client: s.client, gate: s.gate, budget: s.budget, modest: s.modest, cancel: cancel, ending: &s.retiring, paused: &s.paused, places: map[string]bool{}, streams: map[string]func(){}}
	r.config.Stream.Selector = served.Select
	if served.Managed {
		r.client = s.client.Derive(func(o *kube.Options) { o.ManagedFields = true })
	}
	r.served = served
	changes, background := served.Handlers.Of(handler.Changes), served.Handlers.Of(handler.Background)
	watchers := served.Handlers.Of(handler.Events)
	r.kind = &process.Processor{
		Resource: served.Info, Config: s.Process,
		Handlers: changes, Watchers: watchers,
		Fields: slices.Concat(changes.Fields(), background.Fields(), watchers.Fields()),
		API:    r.client, Cluster: s.forHandlers(), Log: s.Log, Stopping: s.stopping, Paused: s.paused.Load, Pauses: r.pauses.Load,
		Post: s.poster.Post, PostFrom: s.Posting.Level, Entrance: s.entry, Mark: s.Stream.Shared.Mark, Outages: s.client.Outages(), Notices: s.notices, Managers: s.client.Managers,
		Alarm: func(key string, at time.Time) { s.clock.Set(appointment{r, key}, at) },
	}
	if s.Posting.Enabled && s.Posting.Loggers {
		r.kind.PostLog = slog.New(recorder.FromLogs(s.Log.Handler(), s.Posting.Level, s.poster.Post))
	}
	if s.vitals.metrics != nil {
		r.counts = s.vitals.metrics.Resource(r.name(), ids(served.Handlers)...)
		r.kind.Observe, r.kind.Foreign = observer(r.counts.Handler), r.counts.ForeignWrite
	}
	r.kind.Daemons = s.daemonsOf(r, background)
	r.kind.Indexers = s.indexersOf(r, served.Handlers.Of(handler.Indexing))
	r.indexOnly.Store(r.kind.Indexers != nil && !s.working())
	r.open(work)
	s.announce(r.kind)
	return r
}

// announce logs that the operator will write to objects of a built-in kind, and which
// handlers cause that.
func (s *server) announce(k *process.Processor) {
	if g := k.Resource.Group; strings.Contains(g, ".") && !strings.HasSuffix(g, ".k8s.io") || len(k.Handlers) == 0 && k.Daemons == nil {
		return
	}
	var annotated, finalized []string
	if k.Daemons != nil {
		for _, spec := range k.Daemons.Specs {
			if spec.Mandatory {
				finalized = append(finalized, spec.ID)
			}
		}
	}
	for _, h := range k.Handlers {
		annotated = append(annotated, h.ID)
		if h.Mandatory {
			finalized = append(finalized, h.ID)
		}
	}
	s.Log.Info("Objects of a built-in kind that match the filters will get annotations, and finalizers if a handler must run before the deletion.",
		"resource", k.Resource.String(), "annotated", annotated, "finalized", finalized)
}

// Wake calls delayed handlers of an object now. No ids means all handlers. Unknown
// objects are ignored.
func (s *server) Wake(of kind.Selector, namespace, name string, ids []string) {
	s.eachServed(of, func(r *resource) { r.wake(namespace, name, r.kind.Waking(ids)) })
}

// WakeOwner calls delayed handlers of the owner of an object in the namespace now. Owner
// references may be forged, so the uid must be that of an object in the same namespace or
// of a cluster-scoped one.
func (s *server) WakeOwner(of kind.Selector, namespace, uid string) {
	s.eachServed(of, func(r *resource) { r.wakeOwner(namespace, uid) })
}

// eachServed calls do for the served resources that the selector selects.
func (s *server) eachServed(of kind.Selector, do func(*resource)) {
	served := s.served.Load()
	if served == nil {
		return
	}
	infos := make([]kind.Info, len(*served))
	for i, r := range *served {
		infos[i] = r.kind.Resource
	}
	for _, info := range of.Select(infos) {
		for _, r := range *served {
			if r.kind.Resource.GVR() == info.GVR() {
				do(r)
			}
		}
	}
}
