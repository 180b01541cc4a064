package process

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// rest notes when the object is to be looked at again.
func (p *Processor) schedule(m *Memory, body *object.Body, due delay, err error) {
	switch {
	case errors.Is(err, apply.ErrGone):
		// Its deletion is about to be seen, and is the end of all this. If it is not
		// seen, the server was wrong: what is unsent is tried again.
		m.ended = true
		p.throttle(m, body, p.jittered(p.errorDelay(m.pend().failures)))
	case apierrors.IsConflict(err):
		// Another client changes the object all the time. That is no error: the
		// change is made again soon.
		w := m.pend()
		w.body, w.until = body, time.Now().Add(p.jittered(apply.ConflictDelay))
		p.Logger(body).Debug("The object changes while it is written to; trying again.", "error", err)
		p.Alarm(body.Key(), w.until)
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
		p.logThrottling(body, pause, err)
		w.failure = err
		p.throttle(m, body, pause)
	case due.Set:
		m.busy = &pending{body: body.Undecoded(), postponed: m.pend().postponed, delays: m.pend().delays}
		p.Alarm(body.Key(), time.Now().Add(due.Is))
	default:
		m.busy = nil
	}
}

// logThrottling logs the pause after an error. An outage of the API server throttles
// all objects that are being handled: it is one ERROR line per minute with a count.
func (p *Processor) logThrottling(body *object.Body, pause time.Duration, err error) {
	var attrs []any
	level := slog.LevelDebug
	if log, omitted := p.Outages.Failed(err); log {
		level = slog.LevelError
		if omitted > 0 {
			attrs = append(attrs, "omitted", omitted)
		}
	}
	if panicked := (*panicError)(nil); errors.As(err, &panicked) {
		attrs = append(attrs, "stack", string(panicked.stack))
	}
	p.Logger(body).Log(context.Background(), level,
		fmt.Sprintf("Throttling for %g seconds due to an unexpected error: %v", pause.Seconds(), err), attrs...)
}

// outage is the longest pause of an object when the API as a whole does not work:
// its requests have made pauses of their own, and what ends with the outage is not
// to last much longer.
const maxOutageDelay = 5 * time.Second

// throttle has the object looked at again after a pause, and not before.
func (p *Processor) throttle(m *Memory, body *object.Body, pause time.Duration) {
	w := m.pend()
	w.body, w.failures, w.until = body, w.failures+1, time.Now().Add(pause)
	p.Alarm(body.Key(), w.until)
}

func (p *Processor) errorDelay(failures int) time.Duration {
	delays := p.Config.ErrorDelays
	if len(delays) == 0 {
		return 0
	}
	return delays[min(failures, len(delays)-1)]
}

// jittered returns a delay of the framework's own with jitter.
func (p *Processor) jittered(d time.Duration) time.Duration {
	return p.Config.Jitter.Shorten(d, jitter.Slight)
}

// forgotten is the pause before handlers are called again whose progress the
// cluster does not keep. It grows.
func (p *Processor) lostRecordsDelay(m *Memory) time.Duration {
	m.undone = min(m.undone, 253) + 1
	return p.jittered(p.errorDelay(int(m.undone) - 1))
}
