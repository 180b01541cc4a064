package metrics

import "github.com/prometheus/client_golang/prometheus"

// Event is the type of a delivered event.
type Event int

// Types of events.
const (
	Listed   Event = iota // an object that exists
	Added                 // an object was created
	Modified              // an object was changed
	Deleted               // an object was deleted
	Missed                // an object was deleted, which was detected later
	events                // number of types
)

var eventNames = [events]string{"listed", "added", "modified", "deleted", "missed"}

// Resource counts events and calls for the objects of one resource.
type Resource struct {
	events              [events]prometheus.Counter
	reconnects, relists prometheus.Counter
	foreign             prometheus.Counter
	handlers            *Handlers
}

// Resource returns the counters of a resource with its declared handlers, by id. name
// is the resource's name for users. Equal names and ids share their series.
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

// Forget removes the series of a resource that is no longer served. Later counts are
// lost until Resource is called again.
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

// Event counts an event that a stream has delivered.
func (r *Resource) Event(e Event) {
	if r != nil && e >= 0 && e < events {
		r.events[e].Inc()
	}
}

// Reconnected counts a watch that resumed where the previous one ended.
func (r *Resource) Reconnected() {
	if r != nil {
		r.reconnects.Inc()
	}
}

// Relisted counts a list that was needed because a watch could not resume.
func (r *Resource) Relisted() {
	if r != nil {
		r.relists.Inc()
	}
}

// ForeignWrite counts a change to the operator's state on an object that was not made
// by this process.
func (r *Resource) ForeignWrite() {
	if r != nil {
		r.foreign.Inc()
	}
}

// Handler returns the counters of a handler: see [Handlers.Handler].
func (r *Resource) Handler(id string) *Handler {
	if r == nil {
		return nil
	}
	return r.handlers.Handler(id)
}
