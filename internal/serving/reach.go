package serving

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/controller"
	"gopf.dev/gopf/internal/rbac"
)

const (
	// reachInterval is the interval of access reviews for controllers that could serve
	// all their namespaces with one watch, but may not.
	reachInterval = 5 * time.Minute

	// refusalGrace is the time for which the API server must forbid the watch of the
	// cluster before watches for each namespace replace it. An API server that has just
	// started may forbid requests for a moment.
	refusalGrace = 5 * time.Second
)

// DecideReach decides for each controller with many namespaces how to watch them, until
// the context is done: with one watch of the cluster where that is allowed, or with one
// for each namespace.
func (s *Controllers) DecideReach(ctx, work context.Context) {
	if len(s.Shared.Namespaces) == 0 {
		return
	}
	ticker := time.NewTicker(reachInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-s.crowded:
			s.decide(ctx, work, (*controller.Controller).Undecided)
			s.withdraw(ctx, work)
		case <-ticker.C:
			s.decide(ctx, work, (*controller.Controller).Crowded)
		}
	}
}

// ask requests decisions of DecideReach. It does not block.
func (s *Controllers) ask() {
	select {
	case s.crowded <- struct{}{}:
	default:
	}
}

// decide asks the API server which of the selected controllers may watch the cluster. A
// controller that is decided changes only if it may. If the API server does not answer,
// an undecided controller tries it: see withdraw.
func (s *Controllers) decide(ctx, work context.Context, selected func(*controller.Controller) bool) {
	for _, c := range s.those(selected) {
		allowed, err := rbac.MayFollow(ctx, s.Shared.Client.Ungated(), c.Info())
		if ctx.Err() != nil {
			return
		}
		if err != nil {
			s.Shared.Log.Debug("Cannot review the permission to watch the whole cluster.", "resource", c.Info().String(), "error", err)
		}
		s.reach(work, c, func() (everywhere, known bool) {
			return choose(c.Undecided(), c.Crowded(), allowed, err != nil)
		})
	}
}

// choose decides how a controller watches its namespaces. allowed means that it may watch
// the cluster; unanswered means that the API server did not say. known is false if the
// controller stays as it is.
func choose(undecided, crowded, allowed, unanswered bool) (everywhere, known bool) {
	if undecided {
		return allowed || unanswered, true
	}
	return true, allowed && crowded
}

// withdraw replaces the watches of the cluster that the API server forbids by watches
// for each namespace.
func (s *Controllers) withdraw(ctx, work context.Context) {
	if len(s.those((*controller.Controller).Refused)) == 0 || backoff.Sleep(ctx, refusalGrace) != nil {
		return
	}
	for _, c := range s.those((*controller.Controller).Refused) {
		s.reach(work, c, func() (everywhere, known bool) { return false, c.Refused() })
	}
}

// those returns the selected controllers.
func (s *Controllers) those(selected func(*controller.Controller) bool) (all []*controller.Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.controllers {
		if selected(c) {
			all = append(all, c)
		}
	}
	return all
}

// reach lets a controller watch the whole cluster, or each of its namespaces, unless
// choose says that it stays as it is.
func (s *Controllers) reach(work context.Context, c *controller.Controller, choose func() (everywhere, known bool)) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controllers[c.Info().GVR()] != c {
		return // it was retired meanwhile
	}
	everywhere, known := choose()
	if !known {
		return
	}
	if everywhere {
		s.Shared.Log.Info("Many namespaces are served; one watch of the whole cluster serves all of them.", "resource", c.Info().String(), "namespaces", len(s.namespaces))
	} else {
		s.Shared.Log.Info("Many namespaces are served, each with its own watch, because the operator may not list and watch the whole cluster. "+
			"Allow it to reduce the load of the API server.", "resource", c.Info().String(), "namespaces", len(s.namespaces))
	}
	if end := c.Reach(everywhere); end != nil {
		s.retiring.Go(func() { end(); s.reached(work, c) })
		return
	}
	s.follow(work, c)
}

// reached starts the watches of a controller again after the former ones have ended.
func (s *Controllers) reached(work context.Context, c *controller.Controller) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.controllers[c.Info().GVR()] != c {
		return
	}
	c.Reached()
	s.follow(work, c)
}
