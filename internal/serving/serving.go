// Package serving has the controllers of all served resources. It starts, replaces and
// retires them as the resources and namespaces of the cluster change.
//
// Read serving.go first: arrange compares the resources of the cluster with the
// controllers. The other files say when handlers may be called (barrier.go: indices,
// pause.go: pauses, lead.go: leader election) and how many namespaces are watched
// (namespaces.go and reach.go). found.go has the questions of other packages.
//
// Two contexts are passed around. ctx ends when the operator must stop. work is the
// parent of all handler contexts and ends later.
package serving

import (
	"context"
	"maps"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/crew"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/owned"
	"gopf.dev/gopf/internal/placement"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/kind"
)

// Config configures [Controllers].
type Config struct {
	Shared   controller.Config // of all controllers; Ask, Paused, Go and Spaces are filled in
	Handlers handler.Set       // of all families
	Name     string            // of the operator; "" means none
	Places   *placement.Places
	Children *owned.Children
	Standby  bool // no handler is called before Lead

	// ScanningDisabled turns off the warnings about namespaces that do not exist.
	ScanningDisabled bool

	// Withheld reports whether a namespace is not served before [Controllers.Admit]. It must
	// always say the same of a namespace. nil means that it is true of none.
	Withheld func(namespace string) bool

	// Discovered is called with the resources of each discovery, and Moved after each
	// change of the resources or namespaces. They must not block, nor call methods of
	// [Controllers].
	Discovered func(cluster []kind.Info)
	Moved      func()
}

// Controllers has a controller for each resource that is served now, and the namespaces
// in which they are served. It is safe for concurrent use.
type Controllers struct {
	Config

	// served is a copy of the values of controllers, to be read without the lock.
	served   atomic.Pointer[[]*controller.Controller]
	retiring crew.Crew     // controllers and watches that are shutting down
	crowded  chan struct{} // signaled when DecideReach must decide
	paused   atomic.Bool

	// Do not wait for handlers under this lock, nor for watches that wait for
	// handlers: the shutdown needs the lock.
	mu          sync.Mutex
	cluster     []kind.Info // all resources of the cluster
	agreed      []kind.Info // the last version of cluster without ambiguous handlers
	controllers map[schema.GroupVersionResource]*controller.Controller
	leaving     map[string]int        // the number of retiring controllers by name
	ended       bool                  // the operator is stopping: start no controllers
	namespaces  map[string]bool       // "" means all; some may be withheld
	admitted    map[string]bool       // withheld namespaces that may be served now
	told        loglimit.Once[string] // current problems
	noted       loglimit.Once[string] // notes
	standby     bool                  // this replica is not the leader
}

// New returns no controllers yet; see [Controllers.Serve].
func New(config Config) *Controllers {
	s := &Controllers{
		Config: config, crowded: make(chan struct{}, 1), standby: config.Standby,
		controllers: map[schema.GroupVersionResource]*controller.Controller{}, leaving: map[string]int{},
		namespaces: firstNamespaces(config.Shared.Namespaces), admitted: map[string]bool{},
	}
	s.Shared.Spaces = &process.Spaces{}
	s.Shared.Ask, s.Shared.Paused, s.Shared.Go = s.ask, s.paused.Load, s.retiring.Go
	s.served.Store(new([]*controller.Controller))
	return s
}

// Serve starts and stops controllers to match the resources of the cluster. ctx ends the
// requests for their schemas. Serve must not be called concurrently with itself.
func (s *Controllers) Serve(ctx, work context.Context, cluster []kind.Info) {
	inStatus := s.Places.Find(ctx, s.Handlers, cluster)
	s.mu.Lock()
	defer s.mu.Unlock()
	if ctx.Err() == nil {
		s.Places.Update(inStatus)
	}
	moved := !reflect.DeepEqual(s.cluster, cluster) // periodic discovery usually finds no change
	s.cluster = cluster
	s.Discovered(cluster)
	if moved {
		s.Moved()
	}
	s.arrange(work)
}

// arrange starts new resources and retires those that are gone or changed. The caller
// must hold s.mu.
func (s *Controllers) arrange(work context.Context) {
	if s.ended {
		return
	}
	plan := s.match()
	for gvr, c := range s.controllers {
		served, stays := plan.Kinds[gvr]
		switch {
		case !stays:
			s.Shared.Log.Info("The resource is gone from the cluster and is no longer served.", "resource", c.Info().String())
		case !c.Serves(served) || !s.Places.Fits(c.Info(), c.StateInStatus()) || c.OpenStatus() != placement.OpenStatus(served.Info, s.cluster):
			s.Shared.Log.Info("The resource has changed; it is restarted.", "resource", served.Info.String())
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
			config := s.Shared
			config.Process = s.Places.Config(config.Process, served.Info)
			config.Process.OpenStatus = placement.OpenStatus(served.Info, s.cluster)
			s.controllers[gvr] = controller.New(work, config, served, s.working())
		}
		s.follow(work, s.controllers[gvr])
	}
	served := slices.Collect(maps.Values(s.controllers))
	s.served.Store(&served)
	s.followChildren(work)
	if len(s.leaving) == 0 { // otherwise more resources follow
		s.Shared.Barrier.Synced(resources)
	}
}

// match returns which handlers serve which resources, and logs what cannot be served.
// The caller must hold s.mu.
func (s *Controllers) match() discovery.Plan {
	plan := discovery.Match(s.Handlers, s.cluster)
	problems := plan.Problems
	if plan.Conflict != nil { // a new CRD made a handler ambiguous: keep the resources of before
		problems = append(problems, plan.Conflict.Error())
		plan = discovery.Match(s.Handlers, s.agreed)
	} else {
		s.agreed = s.cluster
	}
	for _, p := range s.told.Update(problems) {
		s.Shared.Log.Warn("Not everything can be served: " + p)
	}
	for _, n := range plan.Notes { // not problems: health and metrics do not include them
		if s.noted.First(n) {
			s.Shared.Log.Info("Two handlers share an id: " + n)
		}
	}
	return plan
}

// follow starts the missing watches of a controller and ends those of namespaces that
// are not served. Until the replica works, it starts watches only for indices. The
// caller must hold s.mu.
func (s *Controllers) follow(work context.Context, c *controller.Controller) {
	if s.working() || c.Indexed() {
		c.Follow(work, s.open())
	}
}

// followAll starts the missing watches of all controllers and of children. The caller
// must hold s.mu.
func (s *Controllers) followAll(work context.Context) {
	for _, c := range s.controllers {
		s.follow(work, c)
	}
	s.followChildren(work)
}

// followChildren starts the missing watches of children, and ends those that must not run
// now. The caller must hold s.mu.
func (s *Controllers) followChildren(work context.Context) {
	switch {
	case s.ended:
	case s.working() && !s.paused.Load():
		s.Children.Follow(work, s.cluster, s.open())
	default:
		s.Children.Pause()
	}
}

// retire stops a controller whose resource is gone or must be restarted. It does not
// wait. Only after its handlers have ended may another controller serve the same
// objects, for example in another version. This keeps two processors from handling an
// object at the same time, and the removal from indices comes before the new entries.
// The caller must hold s.mu.
func (s *Controllers) retire(work context.Context, c *controller.Controller) {
	s.leaving[c.Name()]++
	s.retiring.Go(func() { c.Retire(func() { s.succeed(work, c) }) })
}

// succeed starts the controllers that waited for the end of former, and removes former
// from the index barrier and the metrics unless a successor has the same name.
func (s *Controllers) succeed(work context.Context, former *controller.Controller) {
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
			s.Shared.Barrier.Drop(source)
		}
	}
	if !named && !s.ended {
		s.Shared.Vitals.Metrics().Forget(name)
	}
}

// End forgets the controllers and returns them. From now on, no other goroutine starts or
// pauses them, and the caller must stop them.
func (s *Controllers) End() []*controller.Controller {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = true
	controllers := slices.Collect(maps.Values(s.controllers))
	clear(s.controllers)
	return controllers
}

// Retired returns a channel that is closed when no controller and no watch is shutting
// down.
func (s *Controllers) Retired() <-chan struct{} { return s.retiring.Empty() }
