package engine

import (
	"context"
	"maps"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// server is a running operator: the resources that are being served now, and
// the namespaces they are served in.
type server struct {
	Config
	client   *kube.Client
	clock    *alarm.Clock[appointment]
	stopping chan struct{}

	mu         sync.Mutex
	resources  map[schema.GroupVersionResource]*resource
	namespaces map[string]bool // "" for all
	told       map[string]bool // problems that were logged already
}

// appointment is an object that gets a turn at some moment.
type appointment struct {
	resource *resource
	key      string
}

func newServer(c Config, client *kube.Client) *server {
	s := &server{
		Config: c, client: client, stopping: make(chan struct{}),
		resources: map[schema.GroupVersionResource]*resource{}, namespaces: map[string]bool{}, told: map[string]bool{},
	}
	s.clock = alarm.New(func(a appointment) { a.resource.ring(a.key) })
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
	plan := observe.Match(s.Handlers, cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	if plan.Conflict != nil { // since the start: what is served stays
		plan.Problems = append(plan.Problems, plan.Conflict.Error())
		s.tell(plan.Problems)
		return
	}
	s.tell(plan.Problems)
	for gvr, r := range s.resources {
		if _, stays := plan.Kinds[gvr]; !stays {
			s.Log.Info("The resource is gone from the cluster and is not served anymore.", "resource", r.kind.Resource.String())
			delete(s.resources, gvr)
			r.close()
		}
	}
	for gvr, served := range plan.Kinds {
		if s.resources[gvr] == nil {
			s.resources[gvr] = s.newResource(work, served)
		}
		s.resources[gvr].follow(work, s.namespaces)
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

func (s *server) newResource(work context.Context, served observe.Served) *resource {
	r := &resource{config: s.Config, client: s.client, streams: map[string]func(){}}
	r.kind = &process.Kind{
		Resource: served.Info, Config: s.Process,
		Handlers: served.Handlers.Of(registry.Changes), Watchers: served.Handlers.Of(registry.Events),
		API: s.client, Log: s.Log, Stopping: s.stopping,
		Alarm: func(key string, at time.Time) { s.clock.Set(appointment{r, key}, at) },
	}
	r.open(work)
	s.announce(r.kind)
	return r
}

// announce tells which objects that belong to Kubernetes itself will be written
// to, and because of which handlers.
func (s *server) announce(k *process.Kind) {
	if g := k.Resource.Group; strings.Contains(g, ".") && !strings.HasSuffix(g, ".k8s.io") || len(k.Handlers) == 0 {
		return
	}
	var annotated, finalized []string
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
	s.mu.Lock()
	var served []kind.Info
	for _, r := range s.resources {
		served = append(served, r.kind.Resource)
	}
	var found []*resource
	for _, info := range of.Select(served) {
		found = append(found, s.resources[info.GVR()])
	}
	s.mu.Unlock()
	for _, r := range found { // it may have to wait, which must not hold up others
		r.wake(namespace, name, &process.Wake{All: len(ids) == 0, IDs: ids})
	}
}

// followNamespaces keeps up with the namespaces that match the patterns, until
// the context is done. Plain names need not be followed.
func (s *server) followNamespaces(ctx, work context.Context, cluster []kind.Info) {
	if _, fixed := s.Namespaces.Fixed(); fixed {
		return
	}
	found := kind.Plural("namespaces").InGroup("").Select(cluster)
	if len(found) == 0 {
		s.Log.Error("The cluster has no namespaces to match patterns with: use plain names.")
		return
	}
	config := s.Stream
	config.Info, config.Namespace, config.Log = found[0], "", s.Log
	_ = stream.New(s.client, config).Run(ctx, func(e stream.Event) {
		if e.Type == stream.Synced || !s.Namespaces.Match(e.Body.Name) {
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if e.Type == stream.Deleted {
			delete(s.namespaces, e.Body.Name)
		} else {
			s.namespaces[e.Body.Name] = true
		}
		for _, r := range s.resources {
			r.follow(work, s.namespaces)
		}
	})
}

// stop ends the work: no more of it is begun; what is running may finish; what
// does not in time is cancelled; what does not heed that either is left behind.
func (s *server) stop(cancel context.CancelCauseFunc) {
	close(s.stopping)
	s.mu.Lock()
	resources := maps.Clone(s.resources)
	s.mu.Unlock()

	var closing sync.WaitGroup
	for _, r := range resources {
		closing.Go(r.close)
	}
	done := make(chan struct{})
	go func() { closing.Wait(); close(done) }()

	exit := time.AfterFunc(s.ExitTimeout, func() { cancel(execute.ErrStopping) })
	defer exit.Stop()
	leave := time.NewTimer(s.ExitTimeout + s.Process.WriteGrace + patience)
	defer leave.Stop()
	select {
	case <-done:
	case <-leave.C:
		for _, r := range resources {
			for _, name := range r.running() {
				s.Log.Warn("A handler does not stop and is left behind.", "resource", r.kind.Resource.String(), "name", name)
			}
		}
	}
}
