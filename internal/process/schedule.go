package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/tracing"
)

// schedule sets the alarm for the next turn of the object after a turn that ended with
// the delay or the error. Without either, the object becomes idle. ctx has the trace of the turn.
func (p *Processor) schedule(ctx context.Context, m *Memory, body *object.Body, due delay, err error) {
	switch {
	case errors.Is(err, apply.ErrGone):
		// The deletion event should arrive soon and end everything. If it does not, the
		// server was wrong, and the unsent change is sent again.
		m.ended = true
		p.slim(m.pend(), body)
		p.throttle(m, body, p.jittered(p.errorDelay(m.pend().failures)))
	case apierrors.IsConflict(err):
		// Another client keeps changing the object. That is not an error: retry soon.
		w := m.pend()
		w.body, w.until = body.Undecoded(), time.Now().Add(p.jittered(apply.ConflictDelay))
		p.slim(w, body)
		tracing.Log(ctx, p.Logger(body)).Debug("Other clients keep changing the object; retrying the write.", "error", err)
		p.setAlarm(m, body, w.until)
	case err != nil:
		w := m.pend()
		pause := p.errorDelay(w.failures)
		if kube.Unavailable(err) {
			pause = min(pause, maxOutageDelay)
		}
		pause = p.jittered(pause)
		w.fresh = w.fresh || apply.Changed(err)
		if unsaved := (&unsavedError{}); errors.As(err, &unsaved) && w.unsent != nil {
			w.refused = w.unsent.handling
		}
		p.slim(w, body)
		p.logThrottling(ctx, body, pause, err)
		w.failure = err
		p.throttle(m, body, pause)
	case due.Set:
		m.busy = &pending{body: body.Undecoded(), postponed: m.pend().postponed, delays: m.pend().delays, misfits: m.pend().misfits}
		p.setAlarm(m, body, time.Now().Add(due.Is))
	default:
		m.busy = nil
	}
}

// setAlarm schedules the next turn of the object for its change handlers.
func (p *Processor) setAlarm(m *Memory, body *object.Body, at time.Time) {
	m.pend().alarm = at
	p.Alarm(body.Key(), at)
}

// slim drops the decoded values of a change of a large object that could not be written:
// any number of objects may be in that state, for as long as their annotations are full,
// other clients keep changing them, or the API server is down. The outcomes of the handlers
// and the changes that they requested stay, so they are not called again. The next turn
// computes the change again.
func (p *Processor) slim(w *pending, body *object.Body) {
	c := w.unsent
	if c == nil {
		c = w.unsaved
	}
	if c == nil || c.todo || c.acted || c.stored > 0 || c.apart && len(c.parts) > 0 || body.Memory() < slimFrom && !c.isWide() && !c.isLarge() {
		return
	}
	later := w.asked.take()
	p.postpone(body, w, slices.Concat(c.parts, later))
	w.unsent, w.unsaved = nil, nil
	if c.handling != nil {
		w.refused = c.handling.slim()
	}
}

// isWide reports whether the change has so many handlers that [Processor.slim] drops their
// declarations, however small the object is: most of them are sub-handlers.
func (c *change) isWide() bool {
	const many = 100
	return c.handling != nil && c.handling.state != nil && len(c.handling.state.IDs()) > many
}

// isLarge reports whether the requested changes are as large as a large object.
func (c *change) isLarge() bool {
	weight := 0
	for i := range c.parts {
		weight += jsonvalue.Weight(c.parts[i].Patch.Fields())
	}
	return weight >= slimFrom
}

// postpone keeps changes that handlers requested until they can be written.
func (p *Processor) postpone(body *object.Body, w *pending, parts []execute.Part) {
	if handler := w.asked.add(parts); handler != "" {
		if ok, suppressed := p.limiter.Allow("asked"); ok {
			p.Logger(body).Error("Dropped older changes of an event handler, because they could not be written and become too many.", "handler", handler, "suppressed", suppressed)
		}
	}
}

// slimFrom is the estimated memory of an object, in bytes, from which [Processor.slim] drops
// its decoded values.
const slimFrom = 32 << 10

// logThrottling logs the backoff after an error. An outage of the API server throttles
// all objects that are being handled, so it is logged at ERROR once a minute, with the
// number of omitted lines.
func (p *Processor) logThrottling(ctx context.Context, body *object.Body, pause time.Duration, err error) {
	var attrs []any
	level := slog.LevelDebug
	if log, omitted := p.Outages.Failed(err); log {
		level = slog.LevelError
		if omitted > 0 {
			attrs = append(attrs, "omitted", omitted)
		}
	}
	if panicked := (*panicError)(nil); errors.As(err, &panicked) && panicked.stack != nil {
		attrs = append(attrs, "stack", string(panicked.stack))
	}
	tracing.Log(ctx, p.Logger(body)).Log(ctx, level,
		fmt.Sprintf("Throttling for %g seconds due to an unexpected error: %v", pause.Seconds(), err), attrs...)
}

// maxOutageDelay limits the backoff of an object while the API server is unavailable.
// The requests have their own backoff, and objects should recover soon after the outage.
const maxOutageDelay = 5 * time.Second

// throttle delays the next turn of the object by the pause.
func (p *Processor) throttle(m *Memory, body *object.Body, pause time.Duration) {
	w := m.pend()
	w.body, w.failures, w.until = body.Undecoded(), w.failures+1, time.Now().Add(pause)
	p.setAlarm(m, body, w.until)
}

// errorDelay returns the backoff after this many earlier failures; see
// [Config.ErrorDelays].
func (p *Processor) errorDelay(failures int) time.Duration {
	delays := p.Config.ErrorDelays
	if len(delays) == 0 {
		return 0
	}
	return delays[min(failures, len(delays)-1)]
}

// jittered shortens a delay of the framework's own retries at random.
func (p *Processor) jittered(d time.Duration) time.Duration {
	return p.Config.Jitter.Shorten(d, jitter.Slight)
}

// lostRecordsDelay returns the delay before handlers are called again whose records
// the API server did not keep. It grows with every call.
func (p *Processor) lostRecordsDelay(m *Memory) time.Duration {
	m.undone = min(m.undone, 253) + 1
	return p.jittered(p.errorDelay(int(m.undone) - 1))
}
