package execute

import (
	"context"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/registry"
)

// Entrance is what every call of a handler passes right before it begins: it
// waits for a free slot, and then until the gate is open. nil lets every call
// pass at once.
//
// Waiting is not running: no attempt is counted while a call waits, and the
// handler's timeout is extended by the time it waited.
type Entrance struct {
	// Open reports whether handlers may be called now. It is asked last, so that
	// there is nothing to wait for between its answer and the call. It must be
	// quick and do no I/O. nil means always.
	Open func() bool

	slots   chan struct{} // one element for each call in progress; nil for no limit
	limited map[*registry.Handler]bool
	running atomic.Int64
}

// Running returns the number of calls in progress. Of nil, it is 0.
func (e *Entrance) Running() int {
	if e == nil {
		return 0
	}
	return int(e.running.Load())
}

// NewEntrance makes an entrance with at most that many calls of the handlers in
// progress at the same time; 0 means no limit. Other handlers, such as
// sub-handlers, which run within the calls of their parents, need no slot.
func NewEntrance(limited registry.Set, most int) *Entrance {
	e := &Entrance{}
	if most > 0 {
		e.slots, e.limited = make(chan struct{}, most), map[*registry.Handler]bool{}
		for _, h := range limited {
			e.limited[h] = true
		}
	}
	return e
}

// For returns the entrance as one handler passes it, for [Attempt.Enter]. The
// handler stops waiting when the context or the channel is done. stop may be nil.
func (e *Entrance) For(h *registry.Handler, stop <-chan struct{}) func(context.Context) (leave func(), err error) {
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

// gatePolling is how often a closed gate is asked again. A gate is closed for
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
