package admission

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
)

// pauses has the exponential backoff after failures and restorations.
type pauses struct {
	jitter       jitter.Source
	failures     int           // consecutive failures
	restorations int           // consecutive restorations
	last         time.Time     // the time of the last restoration
	rest         time.Duration // the delay between the last restoration and the next one
}

// nextRestoration returns the earliest time of the next restoration. Without a backoff,
// two operators that revert each other's changes would write in a tight loop.
func (p *pauses) nextRestoration() time.Time {
	if time.Since(p.last) >= peace {
		p.restorations = 0
	}
	if p.restorations == 0 {
		return time.Time{}
	}
	return p.last.Add(p.rest)
}

// restored notes a restoration.
func (p *pauses) restored() {
	p.restorations++
	p.rest = p.jitter.Shorten(backoff.Backoff{First: restorePause, Most: maxPause}.After(p.restorations), jitter.Slight)
	p.last = time.Now()
}

// afterFailure waits before the next retry.
func (p *pauses) afterFailure(ctx context.Context) {
	p.failures++
	delay := backoff.Backoff{First: failurePause, Most: maxPause}.After(p.failures)
	_ = backoff.Sleep(ctx, p.jitter.Shorten(delay, jitter.Slight)) // the caller checks ctx
}
