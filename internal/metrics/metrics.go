// Package metrics counts and measures what an operator does, for Prometheus.
//
// What happens is counted as it happens, through [Resource], [Handler] and
// [Webhook], whose series are looked up once and not with every call. What is
// at a moment is asked for when somebody scrapes: see [Gauges].
//
// All labels are bounded: resources are those that are served, ids of handlers
// those that are declared. Neither namespaces nor names of objects are labels.
//
// Every method of a nil pointer does nothing, so that operators whose metrics
// nobody asks for need no metrics.
package metrics

import (
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// Options say whose metrics they are. The zero value is fine.
type Options struct {
	// Operator, if set, is the label "operator" of all metrics. It is needed where
	// several operators share one Registerer.
	Operator string

	// Version of the framework, for the build information.
	Version string

	// Registerer, if set, takes the metrics beside those that the program has
	// already, and Gatherer is where all are read from; it may be left out if the
	// Registerer is a Gatherer, too, as registries are. Metrics of the Go runtime
	// and of the process are the program's affair then. Without it the metrics
	// have a registry of their own, with those.
	Registerer prometheus.Registerer
	Gatherer   prometheus.Gatherer

	// Collectors are the program's own, served beside those of the operator.
	Collectors []prometheus.Collector
}

// Metrics are those of one operator. All methods may be called at any time
// from anywhere.
type Metrics struct {
	registerer prometheus.Registerer
	gatherer   prometheus.Gatherer
	registered []prometheus.Collector

	counted  counted
	requests *requests
	gauges   atomic.Pointer[func() Gauges]
}

// counted are the metrics that are counted as things happen.
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

// Handlers take from milliseconds to half an hour, requests and reviews less.
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
			"Events that streams have delivered; type missed is for deletions that were noticed later.", "resource", "type"),
		reconnects: counter("gopf_stream_reconnects_total",
			"Watches that were begun anew from where the one before had ended.", "resource"),
		relists: counter("gopf_stream_relists_total",
			"Lists that were needed because a watch could not go on; the first one does not count.", "resource"),
		foreign: counter("gopf_foreign_writes_total",
			"Changes of the operator's state on objects that this process did not make.", "resource"),
		runs: counter("gopf_handler_runs_total",
			"Calls of handlers by their outcome. The resource of activities is empty.", "resource", "handler", "outcome"),
		runTimes: histogram("gopf_handler_duration_seconds",
			"How long calls of handlers took.", runBuckets, "resource", "handler"),
		requests: counter("gopf_api_requests_total",
			"Requests to the Kubernetes API by HTTP status; code 0 is for those without an answer.", "verb", "resource", "code"),
		requestTimes: histogram("gopf_api_request_duration_seconds",
			"How long the Kubernetes API took to answer; of watches, until they began.", requestBuckets, "verb"),
		posted:  single("gopf_posted_events_total", "Kubernetes events that were posted."),
		dropped: single("gopf_dropped_events_total", "Kubernetes events that were lost because they could not be posted, or not fast enough."),
		reviews: counter("gopf_webhook_reviews_total",
			"Admission reviews by handler and outcome.", "handler", "outcome"),
		reviewTimes: histogram("gopf_webhook_review_duration_seconds",
			"How long handlers of admission reviews took.", requestBuckets, "handler"),
		buildInfo: prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "gopf_build_info",
			Help: "Always 1; the labels tell the versions of the framework and of Go."}, []string{"version", "go_version"}),
	}
}

func (c *counted) all() []prometheus.Collector {
	return []prometheus.Collector{c.events, c.reconnects, c.relists, c.foreign, c.runs, c.runTimes, c.requests, c.requestTimes,
		c.posted, c.dropped, c.reviews, c.reviewTimes, c.buildInfo}
}

// New makes the metrics of an operator. It fails only if a given Registerer
// refuses them.
func New(o Options) (*Metrics, error) {
	m := &Metrics{registerer: o.Registerer, gatherer: o.Gatherer, counted: newCounted()}
	if o.Registerer == nil {
		registry := prometheus.NewRegistry()
		registry.MustRegister(collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}))
		m.registerer, m.gatherer = registry, registry
	} else if m.gatherer == nil {
		var ok bool
		if m.gatherer, ok = o.Registerer.(prometheus.Gatherer); !ok {
			return nil, errors.New("set up metrics: the given Registerer needs a Gatherer beside it")
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
				err = fmt.Errorf("%w; if several operators share the Registerer, each needs a name of its own", err)
			}
			return nil, fmt.Errorf("set up metrics: %w", err)
		}
		m.registered = append(m.registered, c)
	}
	for i, c := range o.Collectors {
		if c == nil {
			m.Close()
			return nil, fmt.Errorf("set up metrics: the collector %d in the settings is nil", i)
		}
		if err := o.register(m, c); err != nil {
			m.Close()
			return nil, fmt.Errorf("set up metrics: the collector %d in the settings (%T): %w; it must be there only once, and its metrics must not begin with gopf_, go_ or process_", i, c, err)
		}
	}
	return m, nil
}

// register adds a collector of the program, without the label of the operator.
func (o Options) register(m *Metrics, c prometheus.Collector) error {
	to := o.Registerer
	if to == nil {
		to = m.gatherer.(*prometheus.Registry)
	}
	return to.Register(c)
}

// Close takes the metrics out of the Registerer, so that another operator may
// use it. They can be counted further, but not read.
func (m *Metrics) Close() {
	if m == nil {
		return
	}
	for _, c := range m.registered {
		m.registerer.Unregister(c)
	}
	m.registered = nil
}

// scrapeTime is how long a scrape may take: as long as Prometheus waits for it
// by default.
const scrapeTime = 10 * time.Second

// Handler serves the metrics. Of nil, it serves nothing but an error.
func (m *Metrics) Handler() http.Handler {
	if m == nil {
		return http.NotFoundHandler()
	}
	return promhttp.HandlerFor(m.gatherer, promhttp.HandlerOpts{
		Timeout:             scrapeTime,
		MaxRequestsInFlight: 10,
		ErrorHandling:       promhttp.ContinueOnError, // one bad metric, of the program's own maybe, does not hide the others
	})
}

// EventPosted counts a Kubernetes event that was posted.
func (m *Metrics) EventPosted() {
	if m != nil {
		m.counted.posted.Inc()
	}
}

// EventsDropped counts Kubernetes events that are lost.
func (m *Metrics) EventsDropped(n int) {
	if m != nil {
		m.counted.dropped.Add(float64(n))
	}
}
