package execute

import (
	"context"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/handler"
)

// Entrance holds back handler calls right before they start: each waits for a free
// slot, and then until the gate is open. A nil Entrance lets every call start at once.
//
// A waiting call does not count as an attempt, and the wait extends the timeout of the
// handler.
type Entrance struct {
	// Open reports whether the gate is open. It is called last, immediately before
	// the handler. It must be quick and do no I/O. nil means always open.
	Open func() bool

	slots   chan struct{} // one element for each call in progress; nil means no limit
	limited map[*handler.Handler]bool
	running atomic.Int64
}

// Running returns the number of calls in progress. e may be nil.
func (e *Entrance) Running() int {
	if e == nil {
		return 0
	}
	return int(e.running.Load())
}

// NewEntrance returns an entrance that allows at most this many concurrent calls of the
// limited handlers; 0 means no limit. Other handlers need no slot. That holds for
// sub-handlers, which run within the calls of their parents.
func NewEntrance(limited handler.Set, most int) *Entrance {
	e := &Entrance{}
	if most > 0 {
		e.slots, e.limited = make(chan struct{}, most), map[*handler.Handler]bool{}
		for _, h := range limited {
			e.limited[h] = true
		}
	}
	return e
}

// For returns the value of [Attempt.Enter] for one handler. The wait ends with an error
// when the context is done or stop is closed. stop may be nil.
func (e *Entrance) For(h *handler.Handler, stop <-chan struct{}) func(context.Context) (leave func(), err error) {
	if e == nil {
		return nil
	}
	return func(ctx context.Context) (leave func(), err error) {
		leave = func() {}
		if e.limited[h] {
			select {
			case e.slots <- struct{}{}:
			case <-ctx.Done():
				return nil, context.Cause(ctx)
			case <-stop:
				return nil, ErrStopping
			}
			leave = func() { <-e.slots }
		}
		if err := e.await(ctx, stop); err != nil {
			leave()
			return nil, err
		}
		e.running.Add(1)
		free := leave
		return func() { e.running.Add(-1); free() }, nil
	}
}

// gatePolling is the interval at which a closed gate is checked. A gate is closed for
// seconds at most: then it opens, or all work is canceled.
const gatePolling = 100 * time.Millisecond

// await waits until the gate is open.
func (e *Entrance) await(ctx context.Context, stop <-chan struct{}) error {
	for e.Open != nil && !e.Open() {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-stop:
			return ErrStopping
		case <-time.After(gatePolling):
		}
	}
	return nil
}
