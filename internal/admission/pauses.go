package admission

import (
	"context"
	"time"

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
	p.rest = p.jitter.Shorten(grown(restorePause, p.restorations), jitter.Slight)
	p.restorations++
	p.last = time.Now()
}

// afterFailure waits before the next retry.
func (p *pauses) afterFailure(ctx context.Context) {
	sleep(ctx, p.jitter.Shorten(grown(failurePause, p.failures), jitter.Slight), nil)
	p.failures++
}

// grown returns the pause doubled n times, but at most maxPause.
func grown(pause time.Duration, n int) time.Duration {
	for range n {
		if pause *= 2; pause >= maxPause {
			return maxPause
		}
	}
	return pause
}

// sleep waits for the duration or for wake, which may be nil. It returns false if ctx is
// done first.
func sleep(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-wake:
		return true
	case <-ctx.Done():
		return false
	}
}
