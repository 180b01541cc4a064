package kube

import (
	"context"
	"sync"
)

// InFlight limits concurrent requests adaptively. The limit is halved when the server
// is overloaded, and grows slowly while successful requests use it up.
type InFlight struct {
	Start    int // Default: 32.
	Min, Max int // Default: 1 and 256.
}

// adapt returns the limit after a request has finished. busy is the number of requests
// in flight, including this one.
func (b InFlight) adapt(limit float64, busy int, overloaded bool) float64 {
	if overloaded {
		return max(limit/2, float64(b.Min))
	}
	// A success proves something about the limit only if the limit was used.
	if float64(busy) < limit/2 {
		return limit
	}
	return min(limit+1/limit, float64(b.Max))
}

// limiter hands out slots for requests in order of arrival.
type limiter struct {
	bounds InFlight

	mu      sync.Mutex
	limit   float64
	busy    int
	cuts    int             // number of times that the limit was halved
	waiting []chan struct{} // each is closed when its slot is granted
}

// slot is the permission to send one request.
type slot struct{ cuts int }

func newLimiter(b InFlight) *limiter {
	b.Min = max(b.Min, 1)
	b.Max = max(b.Max, b.Min)
	b.Start = min(max(b.Start, b.Min), b.Max)
	return &limiter{bounds: b, limit: float64(b.Start)}
}

// acquire waits for a slot. The caller must release it.
func (l *limiter) acquire(ctx context.Context) (slot, error) {
	l.mu.Lock()
	if l.busy < int(l.limit) && len(l.waiting) == 0 {
		l.busy++
		defer l.mu.Unlock()
		return slot{l.cuts}, nil
	}
	granted := make(chan struct{})
	l.waiting = append(l.waiting, granted)
	l.mu.Unlock()

	select {
	case <-granted:
		l.mu.Lock()
		defer l.mu.Unlock()
		return slot{l.cuts}, nil
	case <-ctx.Done():
		l.abandon(granted)
		return slot{}, context.Cause(ctx)
	}
}

// load returns the limit, the requests in flight and the waiting requests.
func (l *limiter) load() (limit float64, busy, waiting int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.limit, l.busy, len(l.waiting)
}

func (l *limiter) abandon(granted chan struct{}) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, w := range l.waiting {
		if w == granted {
			l.waiting = append(l.waiting[:i], l.waiting[i+1:]...)
			return
		}
	}
	// The slot was granted at the same moment; pass it on.
	l.busy--
	l.grant()
}

// release returns a slot and adapts the limit to the result of its request.
func (l *limiter) release(s slot, learnt learnt) {
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case learnt == overloaded && s.cuts == l.cuts:
		// Only the first rejection under one limit counts, or one burst of rejections
		// would reduce the limit to its minimum.
		l.cuts++
		l.limit = l.bounds.adapt(l.limit, l.busy, true)
	case learnt == succeeded:
		l.limit = l.bounds.adapt(l.limit, l.busy, false)
	}
	l.busy--
	l.grant()
}

func (l *limiter) grant() {
	for len(l.waiting) > 0 && l.busy < int(l.limit) {
		l.busy++
		close(l.waiting[0])
		l.waiting = l.waiting[1:]
	}
}

// learnt is the conclusion about the server's load from a finished request.
type learnt int

const (
	nothing learnt = iota
	succeeded
	overloaded
)
