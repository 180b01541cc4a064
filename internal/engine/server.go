package engine

import (
	"context"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/admission"
	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
)

// server is a running operator: the resources that are being served now, and
// the namespaces they are served in.
type server struct {
	Config
	client   *kube.Client
	clock    *alarm.Clock[appointment]
	daemons  *alarm.Clock[*daemon.Task]
	gate     *index.Gate
	poster   *posting.Poster
	control  *admission.Control // of reviews; nil without
	vitals   *vitals
	stopping chan struct{} // closed when no new work is to be begun
	stopped  chan struct{} // closed when none is left
	evicted  chan struct{} // closed when the rest is to be ended at once

	gateOfWrites *gate // nil without an election
	entry        *execute.Entrance
	notices      *process.Notices

	// served is what is being served, for those who must not wait for the lock.
	served   atomic.Pointer[[]*resource]
	retiring crew // resources and streams that are not served anymore and still end

	// Nobody waits for handlers, or for streams that wait for handlers, under this
	// lock: the stop of the operator needs it.
	mu         sync.Mutex
	cluster    []kind.Info // all that there is
	agreed     []kind.Info // the last of that in which no two resources were meant by one handler
	resources  map[schema.GroupVersionResource]*resource
	leaving    map[string]int    // how many resources of the name still end
	ended      bool              // nothing is to be served anymore
	namespaces map[string]bool   // "" for all
	told       map[string]bool   // problems that were logged already
	noted      map[string]bool   // notes that were logged already
	budget     *queue.Budget     // for the memory of turns
	pauses     map[string]string // why nothing is handled now, by who asked for it
	standby    bool              // another one is elected

	paused  atomic.Bool   // there are pauses
	resumed chan struct{} // there are none anymore
	moved   chan struct{} // other resources or namespaces are served than before
}

// appointment is an object that gets a turn at some moment.
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
	s.Posting.Posted, s.Posting.Dropped = v.metrics.EventPosted, v.metrics.EventsDropped
	s.poster = posting.New(client.Ungated(), s.Posting)
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

// serve makes the resources that are served those that the cluster has. The
// context is for handlers.
func (s *server) serve(work context.Context, cluster []kind.Info) {
	s.mu.Lock()
	defer s.mu.Unlock()
	moved := !reflect.DeepEqual(s.cluster, cluster) // it is discovered time and again, mostly in vain
	s.cluster = cluster
	if s.control != nil {
		s.control.Discovered(cluster)
	}
	if moved {
		s.move()
	}
	s.arrange(work)
}

// arrange begins and ends to serve resources as the cluster has them.
func (s *server) arrange(work context.Context) {
	if s.ended {
		return
	}
	plan := observe.Match(s.Handlers, s.cluster)
	problems := plan.Problems
	if plan.Conflict != nil { // since the start: what is served stays
		problems = append(problems, plan.Conflict.Error())
		plan = observe.Match(s.Handlers, s.agreed)
	} else {
		s.agreed = s.cluster
	}
	s.tell(problems)
	s.note(plan.Notes)
	for gvr, r := range s.resources {
		served, stays := plan.Kinds[gvr]
		switch {
		case !stays:
			s.Log.Info("The resource is gone from the cluster and is not served anymore.", "resource", r.kind.Resource.String())
		case !r.serves(served):
			s.Log.Info("The resource has changed, and is served anew.", "resource", served.Info.String())
		default:
			continue
		}
		delete(s.resources, gvr)
		s.retire(work, r)
	}
	for gvr, served := range plan.Kinds {
		if s.resources[gvr] == nil {
			if s.leaving[nameOf(served.Info)] > 0 {
				continue // its objects must not be handled twice at a time
			}
			s.resources[gvr] = s.newResource(work, served)
		}
		s.follow(work, s.resources[gvr])
	}
	served := slices.Collect(maps.Values(s.resources))
	s.served.Store(&served)
	if len(s.leaving) == 0 { // or else there are some more to be expected
		s.gate.Synced(discovery)
	}
}

// follow makes the resource be followed in the namespaces that are served; but
// before all indices are filled, and while another one is elected, only for
// that, and in pauses not at all.
func (s *server) follow(work context.Context, r *resource) {
	if !s.working() && r.kind.Indexers == nil {
		return
	}
	r.settle(s.namespaces)
	if !s.paused.Load() && !r.widening {
		r.follow(work)
	}
}

// tell logs problems that were not there before.
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

// note logs what users may want to know, once. It is no problem: health and metrics
// do not show it.
func (s *server) note(notes []string) {
	for _, n := range notes {
		if !s.noted[n] {
			s.noted[n] = true
			s.Log.Info("Two handlers share an id: " + n)
		}
	}
}

func (s *server) newResource(work context.Context, served observe.Served) *resource {
	work, cancel := context.WithCancelCause(work)
	r := &resource{vitals: s.vitals, config: s.Config, client: s.client, gate: s.gate, budget: s.budget, cancel: cancel, ending: &s.retiring, paused: &s.paused, places: map[string]bool{}, streams: map[string]func(){}}
	r.config.Stream.Selector = served.Select
	if served.Managed {
		r.client = s.client.Derive(func(o *kube.Options) { o.ManagedFields = true })
	}
	r.served = served
	changes, background := served.Handlers.Of(registry.Changes), served.Handlers.Of(registry.Background)
	watchers := served.Handlers.Of(registry.Events)
	r.kind = &process.Processor{
		Resource: served.Info, Config: s.Process,
		Handlers: changes, Watchers: watchers,
		Fields: slices.Concat(changes.Fields(), background.Fields(), watchers.Fields()),
		API:    r.client, Cluster: s.forHandlers(), Log: s.Log, Stopping: s.stopping, Paused: s.paused.Load, Pauses: r.pauses.Load,
		Post: s.poster.Post, PostFrom: s.Posting.Level, Entrance: s.entry, Mark: s.Stream.Shared.Mark, Outages: s.client.Outages(), Notices: s.notices, Managers: s.client.Managers,
		Alarm: func(key string, at time.Time) { s.clock.Set(appointment{r, key}, at) },
	}
	if s.Posting.Enabled && s.Posting.Loggers {
		r.kind.PostLog = slog.New(posting.FromLogs(s.Log.Handler(), s.Posting.Level, s.poster.Post))
	}
	if s.vitals.metrics != nil {
		r.counts = s.vitals.metrics.Resource(r.name(), ids(served.Handlers)...)
		r.kind.Observe, r.kind.Foreign = observer(r.counts.Handler), r.counts.ForeignWrite
	}
	r.kind.Daemons = s.daemonsOf(r, background)
	r.kind.Indexers = s.indexersOf(r, served.Handlers.Of(registry.Indexing))
	r.indexOnly.Store(r.kind.Indexers != nil && !s.working())
	r.open(work)
	s.announce(r.kind)
	return r
}

// announce tells which objects that belong to Kubernetes itself will be written
// to, and because of which handlers.
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
	s.Log.Info("Objects of a built-in kind that match the filters will be annotated, and finalized where a deletion must wait.",
		"resource", k.Resource.String(), "annotated", annotated, "finalized", finalized)
}

// Wake makes delayed handlers of an object due now: those with the ids, or all.
// Objects that are not known are none of our business.
func (s *server) Wake(of kind.Selector, namespace, name string, ids []string) {
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
				r.wake(namespace, name, r.kind.Waking(ids))
			}
		}
	}
}
