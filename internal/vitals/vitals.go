// Package vitals collects the state of an operator for its health and metrics
// endpoints. It only observes the operator and changes nothing in it.
//
// The package does not know the engine. The running operator is an [Operator] here,
// and requests, credentials and watches report to a [Vitals] by callbacks. Read
// vitals.go first, then pulse.go (one watch) and snapshot.go (the state that the
// endpoints show). site.go opens the endpoints, probe.go sends requests while the operator is
// idle, and outcomes.go counts the calls of handlers.
package vitals

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"gopf.dev/gopf/internal/guard"
	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/rbac"
)

// Config configures the endpoints for health, metrics and profiles.
type Config struct {
	Liveness string // the URL of the liveness probe; "" means none
	Address  string // of /livez and /readyz; "" means none
	Metrics  string // the address of /metrics; "" means none
	Pprof    string // the address of /debug/pprof/; "" means none
	Insight  string // the address of the page; "" means none
	Strict   bool   // not ready while a handler has no resource to serve

	// SecureMetrics and SecureInsight protect the metrics and the page with TLS and a review
	// of each request. Without files, the certificate is self-signed.
	SecureMetrics, SecureInsight bool
	CertFile, KeyFile            string

	Collectors []prometheus.Collector // additional ones for /metrics

	// Probes calls the probe handlers and returns their results by id. nil means none.
	Probes func(ctx context.Context) (map[string]any, error)
	// Listening is called once with the addresses of all endpoints. May be nil.
	Listening func(health.Addresses)

	Version    string        // of the framework
	Inactivity time.Duration // the time without a sign of life after which a watch is reconnected
	Log        *slog.Logger
}

// Operator is a running operator. Its methods must be safe for concurrent use.
type Operator interface {
	// Health fills in what only the operator knows: overdue alarms, problems, the
	// reason for being idle, and waiting reviews.
	Health(*health.Snapshot)
	// Gauges returns the current values for the metrics, except those of the watches.
	Gauges() metrics.Gauges
}

// Vitals collects the state of the operator for health and metrics. It exists before
// the operator runs, because startup is observed as well. It is safe for concurrent
// use.
type Vitals struct {
	config  Config
	metrics *metrics.Metrics // nil means that metrics are disabled

	// Refusal is called when the API server rejects the credentials. May be nil. It
	// must be set before the first request.
	Refusal func(error)
	// Page serves the page of the operator. It must be set before Listen if the page has
	// an address.
	Page http.Handler

	reviews *guard.Guard // of the secure endpoints; nil means that there are none

	answered atomic.Int64                  // time of the last response of the API server, in ns; 0 means never
	operator atomic.Pointer[Operator]      // nil during startup
	reviewer atomic.Pointer[rbac.Reviewer] // of permissions; nil during startup

	mu       sync.Mutex
	starting string    // the current step of the startup
	refused  time.Time // when the API server first rejected the credentials; zero means that it accepts them
	why      error     // of the rejection
	pulses   map[*Pulse]struct{}
}

// New returns the vitals of an operator that is not running yet. Metrics are enabled
// if they or the page have an address.
func New(c Config) (*Vitals, error) {
	v := &Vitals{config: c, pulses: map[*Pulse]struct{}{}}
	if c.Metrics == "" && c.Insight == "" {
		return v, nil
	}
	counts, err := metrics.New(metrics.Options{Version: c.Version, Collectors: c.Collectors})
	if err != nil {
		return nil, err
	}
	v.metrics = counts
	counts.Observe(v.gauges)
	return v, nil
}

// Metrics returns the metrics. nil means that they are disabled.
func (v *Vitals) Metrics() *metrics.Metrics { return v.metrics }

// ReviewWith sets the client that reviews requests to the secure endpoints. They respond
// with 503 before.
func (v *Vitals) ReviewWith(api guard.API) {
	if v.reviews != nil {
		v.reviews.Use(api)
	}
}

// Begin sets the current step of the startup, for health.
func (v *Vitals) Begin(waitingFor string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.starting = waitingFor
}

// Started stores the running operator. The startup is over.
func (v *Vitals) Started(o Operator) { v.operator.Store(&o) }

// Unauthorized stores that the API server rejects the credentials. A nil error means
// that it accepts them.
func (v *Vitals) Unauthorized(err error) {
	if v.Refusal != nil && err != nil {
		v.Refusal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.why = err; err == nil {
		v.refused = time.Time{}
	} else if v.refused.IsZero() {
		v.refused = time.Now()
	}
}

// Reviewing stores the reviewer of permissions.
func (v *Vitals) Reviewing(r *rbac.Reviewer) { v.reviewer.Store(r) }

// Recheck starts a new check of permissions. It does nothing during startup.
func (v *Vitals) Recheck() {
	if reviewer := v.reviewer.Load(); reviewer != nil {
		reviewer.Recheck()
	}
}

// Request records one attempt of a request. A 403 triggers a new check of permissions.
func (v *Vitals) Request(o kube.Observation) {
	if o.Code > 0 {
		v.answered.Store(time.Now().UnixNano())
	}
	if o.Code == http.StatusForbidden && !rbac.Asks(o.Resource.GroupResource()) {
		v.Recheck()
	}
	v.metrics.Request(o.Verb, o.Resource.GroupResource().String(), o.Code, o.Duration)
}
