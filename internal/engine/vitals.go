package engine

import (
	"cmp"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/rbac"
	"gopf.dev/gopf/internal/stream"
)

// vitals collects the state of the operator for health and metrics. It exists before
// the server does, because startup is observed as well. It is safe for concurrent use.
type vitals struct {
	inactivity time.Duration
	strict     bool
	metrics    *metrics.Metrics // nil means that metrics are disabled
	refusal    func(error)      // called when the API server rejects the credentials; may be nil

	answered atomic.Int64                  // time of the last response of the API server, in ns; 0 means never
	server   atomic.Pointer[server]        // nil during startup
	reviewer atomic.Pointer[rbac.Reviewer] // of permissions; nil during startup

	mu       sync.Mutex
	starting string    // the current step of the startup
	refused  time.Time // when the API server first rejected the credentials; zero means that it accepts them
	why      error     // of the rejection
	pulses   map[*pulse]struct{}
}

func newVitals(c Config, m *metrics.Metrics) *vitals {
	return &vitals{inactivity: c.Stream.InactivityTimeout, strict: c.Health.Strict, metrics: m, pulses: map[*pulse]struct{}{}}
}

// begin sets the current step of the startup, for health.
func (v *vitals) begin(waitingFor string) {
	v.mu.Lock()
	defer v.mu.Unlock()
	v.starting = waitingFor
}

// unauthorized stores that the API server rejects the credentials. A nil error means
// that it accepts them.
func (v *vitals) unauthorized(err error) {
	if v.refusal != nil && err != nil {
		v.refusal(err)
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if v.why = err; err == nil {
		v.refused = time.Time{}
	} else if v.refused.IsZero() {
		v.refused = time.Now()
	}
}

// request records one attempt of a request. A 403 triggers a new check of permissions.
func (v *vitals) request(o kube.Observation) {
	if o.Code > 0 {
		v.answered.Store(time.Now().UnixNano())
	}
	if reviewer := v.reviewer.Load(); reviewer != nil && o.Code == http.StatusForbidden && !rbac.Asks(o.Resource.GroupResource()) {
		reviewer.Recheck()
	}
	v.metrics.Request(o.Verb, o.Resource.GroupResource().String(), o.Code, o.Duration)
}

// pulse is the state of one watch, for health and metrics.
type pulse struct {
	vitals              *vitals
	counts              *metrics.Resource
	resource, namespace string

	// Times in ns; 0 means never.
	heard   atomic.Int64 // the last sign of life from the API server
	moved   atomic.Int64 // the last progress of the watch
	blocked atomic.Int64 // the start of a delivery that is still running

	mu     sync.Mutex
	status stream.Status
}

// follow adds a watch to the state and sets the callbacks of its configuration. The
// caller must call end when the watch has ended.
func (v *vitals) follow(config *stream.Config, counts *metrics.Resource) (p *pulse, end func()) {
	p = &pulse{vitals: v, counts: counts, resource: config.Info.GVR().GroupResource().String(), namespace: config.Namespace}
	config.Signs, config.Status = p.sign, p.become
	p.status = stream.Status{State: stream.Listing, Since: time.Now()}
	v.mu.Lock()
	defer v.mu.Unlock()
	v.pulses[p] = struct{}{}
	return p, func() {
		v.mu.Lock()
		defer v.mu.Unlock()
		delete(v.pulses, p)
	}
}

func (p *pulse) sign(s stream.Sign) {
	now := time.Now().UnixNano()
	p.moved.Store(now)
	switch s {
	case stream.Heard:
		p.heard.Store(now)
		p.vitals.answered.Store(now)
	case stream.Resumed:
		p.counts.Reconnected()
	case stream.Relisted:
		p.counts.Relisted()
	}
}

func (p *pulse) become(s stream.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = s
}

// deliver calls hand, which may block until the queue has room. Health shows a delivery
// that blocks for long.
func (p *pulse) deliver(e stream.Event, hand func(stream.Event)) {
	p.blocked.Store(time.Now().UnixNano())
	hand(e)
	p.blocked.Store(0)
	p.moved.Store(time.Now().UnixNano())
	p.count(e)
}

func (p *pulse) count(e stream.Event) {
	switch {
	case e.Missed:
		p.counts.Event(metrics.Missed)
	case e.Type == stream.Listed:
		p.counts.Event(metrics.Listed)
	case e.Type == stream.Added:
		p.counts.Event(metrics.Added)
	case e.Type == stream.Modified:
		p.counts.Event(metrics.Modified)
	case e.Type == stream.Deleted:
		p.counts.Event(metrics.Deleted)
	}
}

// moment converts ns since 1970 to a time. 0 means the zero time.
func moment(ns int64) time.Time {
	if ns == 0 {
		return time.Time{}
	}
	return time.Unix(0, ns)
}

func (p *pulse) snapshot() health.Stream {
	p.mu.Lock()
	defer p.mu.Unlock()
	states := map[stream.State]health.State{stream.Listing: health.Listing, stream.Watching: health.Watching, stream.Failing: health.Failing}
	return health.Stream{
		Resource: p.resource, Namespace: p.namespace,
		State: states[p.status.State], Since: p.status.Since, Err: p.status.Err,
		Denied: apierrors.IsForbidden(p.status.Err) || apierrors.IsNotFound(p.status.Err),
		Alive:  moment(p.heard.Load()), Moved: moment(p.moved.Load()), Blocked: moment(p.blocked.Load()),
	}
}

// streams returns the state of all watches, sorted by resource and namespace.
func (v *vitals) streams() []health.Stream {
	v.mu.Lock()
	pulses := make([]*pulse, 0, len(v.pulses))
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
func (v *vitals) snapshot() health.Snapshot {
	s := health.Snapshot{Answered: moment(v.answered.Load()), Streams: v.streams(), Inactivity: v.inactivity, Strict: v.strict}
	v.mu.Lock()
	s.Starting, s.Refused, s.RefusedWhy = v.starting, v.refused, v.why
	v.mu.Unlock()
	if server := v.server.Load(); server != nil {
		s.Started = true
		s.Overdue = max(server.clock.Overdue(), server.daemons.Overdue())
		s.Problems, s.Idle, s.Neighbor = server.problems(), server.idle(), server.notices.Warning()
		if server.control != nil {
			load := server.control.Load()
			s.Reviews, s.ReviewsSince = load.Waiting, load.Since
		}
	}
	return s
}

// gauges returns the current values for the metrics.
func (v *vitals) gauges() metrics.Gauges {
	server := v.server.Load()
	if server == nil {
		return metrics.Gauges{}
	}
	g := server.gauges()
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
