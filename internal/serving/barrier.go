package serving

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/index"
)

// Sources that the index barrier waits for, in addition to the indexed resources.
const (
	resources = "the resources of the cluster"
	patterns  = "the namespaces of the cluster"
)

// peeringIn is the source of the index barrier for a namespace that is withheld until its
// peering object is read.
func peeringIn(namespace string) string { return "the peering in " + namespace }

// NewBarrier returns the index barrier. It opens when all indices are filled, and before
// that no handler is called. Without indices, it is open from the start.
func NewBarrier(indexed bool, namespaces discovery.Namespaces) *index.Gate {
	if !indexed {
		return index.NewGate()
	}
	if _, fixed := namespaces.Fixed(); fixed {
		return index.NewGate(resources)
	}
	return index.NewGate(resources, patterns)
}

const (
	// reminding is the interval of log lines about a wait for the barrier.
	reminding = 10 * time.Second

	// longPause is the interval at which AwaitIndices checks for a pause.
	longPause = 5 * time.Second
)

// OpenBarrier waits until all indices are filled, and then starts all other handlers. It
// returns early if ctx is done.
func (s *Controllers) OpenBarrier(ctx, work context.Context) {
	err := s.Shared.Barrier.Await(ctx, reminding, func(waiting []string) {
		if s.paused.Load() {
			return
		}
		s.Shared.Log.Warn("No handler is called yet, because some indices are not filled: these resources are not listed yet.", "waiting", waiting)
	})
	if err != nil {
		return
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.begin(work)
}

// AwaitIndices waits until the indices are filled, because admission handlers may use
// them. During a pause they are not filled; then it stops waiting, because reviews must
// get a response. It returns false if the context is done.
func (s *Controllers) AwaitIndices(ctx context.Context) bool {
	ticker := time.NewTicker(longPause)
	defer ticker.Stop()
	for {
		select {
		case <-s.Shared.Barrier.Open():
			return true
		case <-ctx.Done():
			return false
		case <-ticker.C:
			if s.paused.Load() {
				return true
			}
		}
	}
}

// begin starts all handlers that were waiting for the index barrier or for the lease.
// Resources that were watched only for their indices are listed again for their other
// handlers. The caller must hold s.mu.
func (s *Controllers) begin(work context.Context) {
	if !s.working() {
		return
	}
	for _, c := range s.controllers {
		if c.Widening() {
			continue
		}
		if end := c.Widen(); end != nil {
			s.retiring.Go(func() { end(); s.widened(work, c) })
		} else {
			s.follow(work, c)
		}
	}
	s.followChildren(work)
}

// widened starts the watches of a controller again, for all its handlers, after those
// for its indices have ended.
func (s *Controllers) widened(work context.Context, c *controller.Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controllers[c.Info().GVR()] != c {
		return // it was retired meanwhile, and retire or End closes it
	}
	c.Widened()
	s.follow(work, c)
}

// working reports whether handlers may be called: the indices are filled, and this
// replica is the leader or needs no election. Pauses do not count. The caller must hold
// s.mu.
func (s *Controllers) working() bool {
	if s.standby {
		return false
	}
	select {
	case <-s.Shared.Barrier.Open():
		return true
	default:
		return false
	}
}
