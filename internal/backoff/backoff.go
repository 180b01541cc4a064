// Package backoff has the growing delays of retries, and the wait for them. Package
// jitter makes them differ between processes.
package backoff

import (
	"context"
	"time"
)

// Backoff is a delay that doubles with each failure in a row.
type Backoff struct {
	First time.Duration // the delay after the first failure
	Most  time.Duration // limits the delay
}

// After returns the delay after so many failures in a row. It is 0 without a failure.
func (b Backoff) After(failures int) time.Duration {
	if failures <= 0 {
		return 0
	}
	delay := b.First
	for range failures - 1 {
		if delay <= 0 || delay >= b.Most {
			break
		}
		if delay > b.Most/2 { // doubling might overflow
			return b.Most
		}
		delay *= 2
	}
	return min(delay, b.Most)
}

// Sleep waits for d. If ctx is done first, it returns the cause.
func Sleep(ctx context.Context, d time.Duration) error { return SleepOrWake(ctx, d, nil) }

// SleepOrWake waits for d or for wake, which may be nil. If ctx is done first, it returns
// the cause.
func SleepOrWake(ctx context.Context, d time.Duration, wake <-chan struct{}) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-wake:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	return nil
}
