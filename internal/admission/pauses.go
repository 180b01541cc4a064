package admission

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/jitter"
)

// pauses grow with what goes wrong in a row.
type pauses struct {
	jitter       jitter.Source
	failures     int
	restorations int
	last         time.Time     // restoration
	rest         time.Duration // after it, before the next one
}

// nextRestoration is the earliest time to restore what others have changed: others
// may insist, and then two operators would go on for ever as fast as they can.
func (p *pauses) nextRestoration() time.Time {
	if time.Since(p.last) >= peace {
		p.restorations = 0
	}
	if p.restorations == 0 {
		return time.Time{}
	}
	return p.last.Add(p.rest)
}

func (p *pauses) restored() {
	p.rest = p.jitter.Shorten(grown(restorePause, p.restorations), jitter.Slight)
	p.restorations++
	p.last = time.Now()
}

// afterFailure waits before the next attempt.
func (p *pauses) afterFailure(ctx context.Context) {
	sleep(ctx, p.jitter.Shorten(grown(failurePause, p.failures), jitter.Slight), nil)
	p.failures++
}

// grown is a pause doubled n times, up to the longest.
func grown(pause time.Duration, n int) time.Duration {
	for range n {
		if pause *= 2; pause >= maxPause {
			return maxPause
		}
	}
	return pause
}

// sleep waits for the time or for wake, which may be nil; it is false if ctx ended
// first.
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
