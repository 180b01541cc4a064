package metrics

import (
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Outcome is the outcome of a call of a handler.
type Outcome int

// Outcomes of calls.
const (
	Succeeded Outcome = iota
	Retried           // it failed and will be called again
	Failed            // it failed permanently
	Waiting           // it waits for something, without having failed
	Ignored           // it failed, and the error is ignored
	Stopped           // it was interrupted because the operator or the daemon stops
	outcomes          // number of outcomes
)

var outcomeNames = [outcomes]string{"succeeded", "retried", "failed", "waiting", "ignored", "stopped"}

// String returns the name of the outcome, as in the metrics.
func (o Outcome) String() string { return outcomeNames[o] }

// Handlers are the counters of the declared handlers of a resource, or of activities.
type Handlers struct {
	m        *Metrics
	resource string
	declared map[string]*Handler

	mu     sync.RWMutex
	folded map[string]*Handler // of sub-handlers, by the declared id of their parents; "" is for others
}

// Handler counts the calls of one handler, or of all its sub-handlers.
type Handler struct {
	runs  [outcomes]prometheus.Counter
	times prometheus.Observer
}

// Activities returns the counters of handlers that belong to no resource: startup,
// cleanup, login, probes.
func (m *Metrics) Activities(declared ...string) *Handlers {
	if m == nil {
		return nil
	}
	return m.handlers("", declared)
}

func (m *Metrics) handlers(resource string, declared []string) *Handlers {
	h := &Handlers{m: m, resource: resource, declared: map[string]*Handler{}, folded: map[string]*Handler{}}
	for _, id := range declared {
		h.declared[id] = m.handler(resource, id)
	}
	return h
}

func (m *Metrics) handler(resource, label string) *Handler {
	h := &Handler{times: m.counted.runTimes.WithLabelValues(resource, label)}
	for o := range h.runs {
		h.runs[o] = m.counted.runs.WithLabelValues(resource, label, outcomeNames[o])
	}
	return h
}

// Handler returns the counters of a handler. Ids of sub-handlers may be made from data.
// Therefore all sub-handlers of one declared parent, at any depth, are counted together
// as "parent/*". Other undeclared ids are counted as "*".
func (h *Handlers) Handler(id string) *Handler {
	if h == nil {
		return nil
	}
	if found := h.declared[id]; found != nil {
		return found
	}
	parent := id
	for h.declared[parent] == nil && parent != "" {
		parent = parent[:max(0, strings.LastIndexByte(parent, '/'))]
	}
	h.mu.RLock()
	found := h.folded[parent]
	h.mu.RUnlock()
	if found != nil {
		return found
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	h.folded[parent] = h.m.handler(h.resource, strings.TrimPrefix(parent+"/*", "/"))
	return h.folded[parent]
}

// Ran counts a call and its duration.
func (h *Handler) Ran(o Outcome, took time.Duration) {
	if h != nil && o >= 0 && o < outcomes {
		h.runs[o].Inc()
		h.times.Observe(took.Seconds())
	}
}
