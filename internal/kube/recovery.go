package kube

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/backoff"
)

// recovery shortens the pauses of failed requests, however long they have become.
// Requests then succeed soon after an outage ends.
//
// Once the server responds to any request, no pause lasts much longer than the
// patience. Until then, one request at a time retries early as a probe, so the load on
// the server does not depend on the number of waiting requests. The patience is short
// if the server is unreachable, because probing costs it nothing.
type recovery struct {
	mu       sync.Mutex
	waiting  int
	answered chan struct{} // closed at the next response; nil while no request waits
	ahead    time.Time     // when the last early probe was sent
}

// patience is the minimum length of a pause that may be cut short, and the interval of
// early probes. patience applies after error responses, unreachablePatience after
// attempts without a response.
const (
	patience            = 5 * time.Second
	unreachablePatience = time.Second
)

// pause waits, and returns the rest of the pause if it was cut short. It returns an
// error only if ctx ends.
func (r *recovery) pause(ctx context.Context, d, patience time.Duration) (left time.Duration, err error) {
	if d <= patience {
		return 0, backoff.Sleep(ctx, d)
	}
	answered := r.enter()
	defer r.leave()
	until := time.Now().Add(d)
	if err := backoff.Sleep(ctx, patience); err != nil {
		return 0, err
	}
	for {
		left := time.Until(until)
		if left <= 0 || closed(answered) || r.goAhead(patience) {
			return max(left, 0), nil
		}
		if err := backoff.SleepOrWake(ctx, min(left, patience), answered); err != nil {
			return 0, err
		}
	}
}

// hasAnswered records that the server responds.
func (r *recovery) hasAnswered() {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting > 0 {
		close(r.answered)
		r.answered = make(chan struct{})
	}
}

func (r *recovery) enter() <-chan struct{} {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting == 0 {
		r.answered = make(chan struct{})
	}
	r.waiting++
	return r.answered
}

func (r *recovery) leave() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.waiting--
}

// goAhead reports whether the calling request must probe the server now.
func (r *recovery) goAhead(patience time.Duration) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if time.Since(r.ahead) < patience {
		return false
	}
	r.ahead = time.Now()
	return true
}

func closed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
