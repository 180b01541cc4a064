package engine

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/kind"
)

// problems returns sorted descriptions of the handlers that cannot be served.
func (s *server) problems() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Sorted(maps.Keys(s.told))
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

// gauges returns the current values for the metrics, except those of the watches.
func (s *server) gauges() metrics.Gauges {
	g := metrics.Gauges{Paused: s.paused.Load(), Indices: map[string]int{}}
	g.Load.Handlers = s.entry.Running()
	g.Load.Limit, g.Load.InFlight, g.Load.Waiting = s.client.Load()
	for h, target := range s.Indices {
		g.Indices[h.ID] = target.Len()
	}
	s.mu.Lock()
	g.Leading, g.Problems = !s.standby, len(s.told)
	resources := slices.Collect(maps.Values(s.resources))
	s.mu.Unlock()
	for _, r := range resources {
		g.Resources = append(g.Resources, r.gauges(s))
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

func (r *resource) gauges(s *server) metrics.ResourceGauges {
	g := metrics.ResourceGauges{Resource: r.name()}
	g.Queued, g.QueuedBytes, g.Oldest = r.queue.Depth()
	g.Retries, g.OldestRetry = s.clock.Count(func(a appointment) bool { return a.resource == r })
	if r.kind.Daemons != nil {
		g.Daemons, g.Timers = r.kind.Daemons.Tally()
	}
	return g
}

// name returns the name of the resource in metrics and health, such as pods or
// widgets.example.com.
func (r *resource) name() string { return nameOf(r.kind.Resource) }

func nameOf(info kind.Info) string { return info.GVR().GroupResource().String() }

// observer returns a function that counts the calls of handlers. A nil find means no
// counting.
func observer(find func(id string) *metrics.Handler) execute.Observer {
	if find == nil {
		return nil
	}
	return func(id string, o execute.Outcome, took time.Duration) { find(id).Ran(outcomeOf(o), took) }
}

func outcomeOf(o execute.Outcome) metrics.Outcome {
	temporary, _ := o.Err.(*handler.TemporaryError)
	_, unfinished := o.Err.(*handler.UnfinishedError)
	_, unfit := o.Err.(*handler.UndecodableError)
	switch {
	case o.Void && !unfit:
		return metrics.Stopped
	case o.Ignored != nil:
		return metrics.Ignored
	case o.Final && o.Err != nil:
		return metrics.Failed
	case o.Final:
		return metrics.Succeeded
	case unfinished, temporary != nil && temporary.Wait:
		return metrics.Waiting
	}
	return metrics.Retried
}

// ids returns the ids of the handlers.
func ids(handlers handler.Set) []string {
	all := make([]string, len(handlers))
	for i, h := range handlers {
		all[i] = h.ID
	}
	return all
}
