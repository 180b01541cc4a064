package engine

import (
	"strings"
	"time"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
)

// idle returns the reasons why the operator intentionally handles nothing: pauses and
// standby. An empty string means that it works.
func (op *operator) idle() string {
	why := op.Pauses()
	if op.controllers.Standby() {
		why = append(why, "another replica holds the lease; this one is a standby")
	}
	return strings.Join(why, "; ")
}

// Health fills in what only the operator knows. It implements [vitals.Operator].
func (op *operator) Health(h *health.Snapshot) {
	h.Overdue = max(op.clock.Overdue(), op.daemons.Overdue())
	h.Problems, h.Idle, h.Neighbor = op.controllers.Problems(), op.idle(), op.notices.Warning()
	if op.control != nil {
		load := op.control.Load()
		h.Reviews, h.ReviewsSince, h.ReviewsBlocked, h.NoReviews = load.Waiting, load.Since, load.Blocked, !op.control.Serves()
	}
}

// Gauges returns the current values for the metrics, except those of the watches. It
// implements [vitals.Operator].
func (op *operator) Gauges() metrics.Gauges {
	g := metrics.Gauges{Paused: op.controllers.Paused(), Indices: map[string]int{}}
	g.Load.Handlers = op.entry.Running()
	g.Load.Limit, g.Load.InFlight, g.Load.Waiting = op.client.Load()
	for h, target := range op.Indices {
		g.Indices[h.ID] = target.Len()
	}
	g.Leading, g.Problems = !op.controllers.Standby(), len(op.controllers.Problems())
	g.Resources = op.controllers.Gauges()
	if op.control != nil {
		load := op.control.Load()
		g.Reviews = metrics.ReviewGauges{Waiting: load.Waiting, InFlight: load.InFlight, Bytes: load.Bytes, CertificateExpiry: op.control.CertificateExpiry()}
		if load.Waiting > 0 {
			g.Reviews.Oldest = time.Since(load.Since)
		}
	}
	return g
}
