package metrics

import "github.com/prometheus/client_golang/prometheus"

// Event is what a stream has delivered.
type Event int

// The events of streams.
const (
	Listed   Event = iota // an object that exists
	Added                 // an object was created
	Modified              // an object was changed
	Deleted               // an object was deleted
	Missed                // an object was deleted, which was noticed later
	events                // how many there are
)

var eventNames = [events]string{"listed", "added", "modified", "deleted", "missed"}

// Resource counts what happens to the objects of one resource.
type Resource struct {
	events              [events]prometheus.Counter
	reconnects, relists prometheus.Counter
	foreign             prometheus.Counter
	handlers            *Handlers
}

// Resource makes the counters of a resource with its declared handlers, by
// their ids. The name is as people know it. Equal names and ids share their
// series.
func (m *Metrics) Resource(name string, declared ...string) *Resource {
	if m == nil {
		return nil
	}
	r := &Resource{
		reconnects: m.counted.reconnects.WithLabelValues(name),
		relists:    m.counted.relists.WithLabelValues(name),
		foreign:    m.counted.foreign.WithLabelValues(name),
		handlers:   m.handlers(name, declared),
	}
	for e := range r.events {
		r.events[e] = m.counted.events.WithLabelValues(name, eventNames[e])
	}
	return r
}

// Forget ends the series of a resource that is not served any more. What is
// counted of it later is lost, unless it is made anew.
func (m *Metrics) Forget(resource string) {
	if m == nil {
		return
	}
	label := prometheus.Labels{"resource": resource}
	m.counted.events.DeletePartialMatch(label)
	m.counted.reconnects.DeletePartialMatch(label)
	m.counted.relists.DeletePartialMatch(label)
	m.counted.foreign.DeletePartialMatch(label)
	m.counted.runs.DeletePartialMatch(label)
	m.counted.runTimes.DeletePartialMatch(label)
}

// Event counts something that a stream has delivered.
func (r *Resource) Event(e Event) {
	if r != nil && e >= 0 && e < events {
		r.events[e].Inc()
	}
}

// Reconnected counts a watch that was begun anew from where the one before had
// ended.
func (r *Resource) Reconnected() {
	if r != nil {
		r.reconnects.Inc()
	}
}

// Relisted counts a list that was needed because a watch could not go on.
func (r *Resource) Relisted() {
	if r != nil {
		r.relists.Inc()
	}
}

// ForeignWrite counts a change of the operator's state on an object that this process
// did not make.
func (r *Resource) ForeignWrite() {
	if r != nil {
		r.foreign.Inc()
	}
}

// Handler finds the counters of a handler: see [Handlers.Handler].
func (r *Resource) Handler(id string) *Handler {
	if r == nil {
		return nil
	}
	return r.handlers.Handler(id)
}
