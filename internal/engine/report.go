package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
)

// problems returns sorted descriptions of the handlers that cannot be served.
func (s *server) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(slices.Values(s.told.Kinds()))
}

// idle returns the reasons why the operator intentionally handles nothing: pauses and
// standby. An empty string means that it works.
func (s *server) idle() string {
	why := s.Pauses()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.standby {
		why = append(why, "another replica holds the lease; this one is a standby")
	}
	return strings.Join(why, "; ")
}

// Health fills in what only the server knows. It implements [vitals.Operator].
func (s *server) Health(h *health.Snapshot) {
	h.Overdue = max(s.clock.Overdue(), s.daemons.Overdue())
	h.Problems, h.Idle, h.Neighbor = s.problems(), s.idle(), s.notices.Warning()
	if s.control != nil {
		load := s.control.Load()
		h.Reviews, h.ReviewsSince = load.Waiting, load.Since
	}
}

// Gauges returns the current values for the metrics, except those of the watches. It
// implements [vitals.Operator].
func (s *server) Gauges() metrics.Gauges {
	g := metrics.Gauges{Paused: s.paused.Load(), Indices: map[string]int{}}
	g.Load.Handlers = s.entry.Running()
	g.Load.Limit, g.Load.InFlight, g.Load.Waiting = s.client.Load()
	for h, target := range s.Indices {
		g.Indices[h.ID] = target.Len()
	}
	s.mu.Lock()
	g.Leading, g.Problems = !s.standby, s.told.Len()
	controllers := slices.Collect(maps.Values(s.controllers))
	s.mu.Unlock()
	for _, c := range controllers {
		g.Resources = append(g.Resources, c.Gauges())
	}
	if s.control != nil {
		load := s.control.Load()
		g.Reviews = metrics.ReviewGauges{Waiting: load.Waiting, InFlight: load.InFlight, Bytes: load.Bytes, CertificateExpiry: s.control.CertificateExpiry()}
		if load.Waiting > 0 {
			g.Reviews.Oldest = time.Since(load.Since)
		}
	}
	return g
}
