package vitals

import (
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/health"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/stream"
)

// Pulse is the state of one watch, for health and metrics.
type Pulse struct {
	vitals              *Vitals
	counts              *metrics.Resource
	resource, namespace string

	// Times in ns; 0 means never.
	heard   atomic.Int64 // the last sign of life from the API server
	moved   atomic.Int64 // the last progress of the watch
	blocked atomic.Int64 // the start of a delivery that is still running

	mu     sync.Mutex
	status stream.Status
}

// Follow adds a watch to the state and sets the callbacks of its configuration. The
// caller must call end when the watch has ended.
func (v *Vitals) Follow(config *stream.Config, counts *metrics.Resource) (p *Pulse, end func()) {
	p = &Pulse{vitals: v, counts: counts, resource: config.Info.GVR().GroupResource().String(), namespace: config.Namespace}
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

func (p *Pulse) sign(s stream.Sign) {
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

func (p *Pulse) become(s stream.Status) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.status = s
}

// Deliver calls hand, which may block until the queue has room. Health shows a delivery
// that blocks for long.
func (p *Pulse) Deliver(e stream.Event, hand func(stream.Event)) {
	p.blocked.Store(time.Now().UnixNano())
	hand(e)
	p.blocked.Store(0)
	p.moved.Store(time.Now().UnixNano())
	p.Count(e)
}

// Count counts an event that was delivered without [Pulse.Deliver].
func (p *Pulse) Count(e stream.Event) {
	switch {
	case e.Missed:
		p.counts.Event(metrics.Missed)
	case e.Type == kube.Listed:
		p.counts.Event(metrics.Listed)
	case e.Type == kube.Added:
		p.counts.Event(metrics.Added)
	case e.Type == kube.Modified:
		p.counts.Event(metrics.Modified)
	case e.Type == kube.Deleted:
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

func (p *Pulse) snapshot() health.Stream {
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
