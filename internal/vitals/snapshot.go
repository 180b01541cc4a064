package vitals

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/metrics"
)

// streams returns the state of all watches, sorted by resource and namespace.
func (v *Vitals) streams() []health.Stream {
	v.mu.Lock()
	pulses := make([]*Pulse, 0, len(v.pulses))
	for p := range v.pulses {
		pulses = append(pulses, p)
	}
	v.mu.Unlock()
	streams := make([]health.Stream, len(pulses))
	for i, p := range pulses {
		streams[i] = p.snapshot()
	}
	slices.SortFunc(streams, func(a, b health.Stream) int {
		return cmp.Or(strings.Compare(a.Resource, b.Resource), strings.Compare(a.Namespace, b.Namespace))
	})
	return streams
}

// snapshot returns the state from which health is computed.
func (v *Vitals) snapshot() health.Snapshot {
	s := health.Snapshot{Answered: moment(v.answered.Load()), Streams: v.streams(), Inactivity: v.config.Inactivity, Strict: v.config.Strict}
	v.mu.Lock()
	s.Starting, s.Refused, s.RefusedWhy = v.starting, v.refused, v.why
	v.mu.Unlock()
	if operator := v.operator.Load(); operator != nil {
		s.Started = true
		(*operator).Health(&s)
	}
	return s
}

// gauges returns the current values for the metrics.
func (v *Vitals) gauges() metrics.Gauges {
	operator := v.operator.Load()
	if operator == nil {
		return metrics.Gauges{}
	}
	g := (*operator).Gauges()
	for _, s := range v.streams() {
		r := metrics.ResourceGauges{Resource: s.Resource}
		if !s.Alive.IsZero() {
			r.Silence = time.Since(s.Alive)
		}
		switch s.State {
		case health.Listing:
			r.Listing = 1
		case health.Watching:
			r.Watching = 1
		case health.Failing:
			r.Failing = 1
		}
		g.Resources = append(g.Resources, r)
	}
	return g
}
