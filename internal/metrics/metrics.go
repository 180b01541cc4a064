// Package metrics counts and measures what an operator does, for Prometheus.
//
// Events are counted as they happen, through [Resource], [Handler] and [Webhook], which
// look up their series once and not with every call. The current state is collected at
// each scrape: see [Gauges].
//
// All labels are bounded: resources are the served ones, ids of handlers the declared
// ones. Namespaces and names of objects are never labels.
//
// Every method of a nil pointer does nothing, so operators without a metrics endpoint
// need no metrics.
package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options configure the metrics. The zero value is usable.
type Options struct {
	// Operator is the label "operator" of all metrics. It is required if several
	// operators share one Registerer. Empty means no label.
	Operator string

	// Version is the version of the framework, for the build information.
	Version string

	// Registerer receives the metrics, in addition to the program's own. Gatherer reads
	// them all; it may be omitted if the Registerer is also a Gatherer, as registries
	// are. The program is then responsible for metrics of the Go runtime and the
	// process. If Registerer is nil, the metrics have a separate registry, which
	// includes those.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer

	// Collectors are the program's own collectors, served with those of the operator.
	Collectors []prometheus.Collector
}

// Metrics are the metrics of one operator. All methods are safe for concurrent use.
type Metrics struct {
	registerer prometheus.Registerer
	gatherer   prometheus.Gatherer
	registered []prometheus.Collector

	counted  counted
	requests *requests
	gauges   atomic.Pointer[func() Gauges]
}

// counted are the metrics that are counted as events happen.
type counted struct {
	events              *prometheus.CounterVec
	reconnects, relists *prometheus.CounterVec
	foreign             *prometheus.CounterVec
	runs                *prometheus.CounterVec
	runTimes            *prometheus.HistogramVec
	requests            *prometheus.CounterVec
	requestTimes        *prometheus.HistogramVec
	posted, dropped     prometheus.Counter
	reviews             *prometheus.CounterVec
	reviewTimes         *prometheus.HistogramVec
	buildInfo           *prometheus.GaugeVec
}

// Handlers take milliseconds to half an hour; requests and reviews take less.
var (
	runBuckets     = []float64{.005, .025, .1, .5, 1, 5, 15, 60, 300, 1800}
	requestBuckets = []float64{.005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
)

func newCounted() counted {
	counter := func(name, help string, labels ...string) *prometheus.CounterVec {
		return prometheus.NewCounterVec(prometheus.CounterOpts{Name: name, Help: help}, labels)
	}
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	single := func(name, help string) prometheus.Counter {
		return prometheus.NewCounter(prometheus.CounterOpts{Name: name, Help: help})
	}
	return counted{
		events: counter("gopf_stream_events_total",
			"Events delivered by streams; type missed is for deletions that were detected later.", "resource", "type"),
		reconnects: counter("gopf_stream_reconnects_total",
			"Watches that resumed where the previous one ended.", "resource"),
		relists: counter("gopf_stream_relists_total",
			"Lists that were needed because a watch could not resume; the first list does not count.", "resource"),
		foreign: counter("gopf_foreign_writes_total",
			"Changes to the operator's state on objects that were not made by this process.", "resource"),
		runs: counter("gopf_handler_runs_total",
			"Calls of handlers by outcome. The resource of activities is empty.", "resource", "handler", "outcome"),
		runTimes: histogram("gopf_handler_duration_seconds",
			"Duration of calls of handlers.", runBuckets, "resource", "handler"),
		requests: counter("gopf_api_requests_total",
			"Requests to the Kubernetes API by HTTP status; code 0 means no response.", "verb", "resource", "code"),
		requestTimes: histogram("gopf_api_request_duration_seconds",
			"Response time of the Kubernetes API; for watches, until they started.", requestBuckets, "verb"),
		posted:  single("gopf_posted_events_total", "Kubernetes events that were posted."),
		dropped: single("gopf_dropped_events_total", "Kubernetes events that were lost because they could not be posted, or not fast enough."),
		reviews: counter("gopf_webhook_reviews_total",
			"Admission reviews by handler and outcome.", "handler", "outcome"),
		reviewTimes: histogram("gopf_webhook_review_duration_seconds",
			"Duration of handlers of admission reviews.", requestBuckets, "handler"),
		buildInfo: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gopf_build_info",
			Help: "Always 1; the labels are the versions of the framework and of Go."}, []string{"version", "go_version"}),
	}
}

func (c *counted) all() []prometheus.Collector {
	return []prometheus.Collector{c.events, c.reconnects, c.relists, c.foreign, c.runs, c.runTimes, c.requests, c.requestTimes,
		c.posted, c.dropped, c.reviews, c.reviewTimes, c.buildInfo}
}

// New returns the metrics of an operator. It returns an error if a collector cannot be
// registered, or if the Registerer has no Gatherer.
func New(o Options) (*Metrics, error) {
	m := &Metrics{registerer: o.Registerer, gatherer: o.Gatherer, counted: newCounted()}
	if o.Registerer == nil {
		registry := prometheus.NewRegistry()
		// Package collectors has the same functions, but adds database/sql to all operators.
		registry.MustRegister(prometheus.NewGoCollector(), prometheus.NewProcessCollector(prometheus.ProcessCollectorOpts{})) //nolint:staticcheck // see above
		m.registerer, m.gatherer = registry, registry
	} else if m.gatherer == nil {
		var ok bool
		if m.gatherer, ok = o.Registerer.(prometheus.Gatherer); !ok {
			return nil, errors.New("set up metrics: the given Registerer requires a Gatherer")
		}
	}
	if o.Operator != "" {
		m.registerer = prometheus.WrapRegistererWith(prometheus.Labels{"operator": o.Operator}, m.registerer)
	}
	m.requests = newRequests(m.counted.requests, m.counted.requestTimes)
	m.counted.buildInfo.WithLabelValues(o.Version, runtime.Version()).Set(1)
	for _, c := range append(m.counted.all(), &gaugeCollector{m}) {
		if err := m.registerer.Register(c); err != nil {
			m.Close()
			if _, twice := errors.AsType[prometheus.AlreadyRegisteredError](err); twice {
				err = fmt.Errorf("%w; if several operators share the Registerer, each needs a unique name", err)
			}
			return nil, fmt.Errorf("set up metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	for i, c := range o.Collectors {
		if c == nil {
			m.Close()
			return nil, fmt.Errorf("set up metrics: collector %d in the settings is nil", i)
		}
		if err := o.register(m, c); err != nil {
			m.Close()
			return nil, fmt.Errorf("set up metrics: collector %d in the settings (%T): %w; list it only once, and its metrics must not start with gopf_, go_ or process_", i, c, err)
		}
	}
	return m, nil
}

// register adds a collector of the program, without the operator label.
func (o Options) register(m *Metrics, c prometheus.Collector) error {
	to := o.Registerer
	if to == nil {
		to = m.gatherer.(*prometheus.Registry)
	}
	return to.Register(c)
}

// Close removes the metrics from the Registerer, for example to let another operator
// use it. They may still be counted, but not read.
func (m *Metrics) Close() {
	if m == nil {
		return
	}
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
	m.registered = nil
}

// scrapeTime limits a scrape: it is the default timeout of Prometheus.
const scrapeTime = 10 * time.Second

// Handler returns a handler that serves the metrics. For nil, it responds with 404.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.gatherer, promhttp.HandlerOpts{
		Timeout:             scrapeTime,
		MaxRequestsInFlight: 10,
		ErrorHandling:       promhttp.ContinueOnError, // one bad metric, perhaps of the program, does not hide the others
	})
}

// EventPosted counts a Kubernetes event that was posted.
func (m *Metrics) EventPosted() {
	if m != nil {
		m.counted.posted.Inc()
	}
}

// EventsDropped counts lost Kubernetes events.
func (m *Metrics) EventsDropped(n int) {
	if m != nil {
		m.counted.dropped.Add(float64(n))
	}
}
