package index

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// Target is an [Index] with its types erased.
type Target interface {
	// Replace makes the values, a map of the index's own type, all that the
	// object has in the index.
	Replace(object string, values any)
	// Remove takes the object out of the index, if it is there.
	Remove(object string)
	// Len is the number of keys.
	Len() int
}

// Function is a declared index function and what it fills.
type Function struct {
	// Handler has the id, the filters, the limits. Its Call leaves the map,
	// which may be a nil one, in Request.Result; without any result the values
	// are kept.
	Handler *registry.Handler
	Into    Target
}

// Indexers keep what the objects of one resource have in indices up to date.
//
// # Guarantees
//
// All functions that match an object are called for each of its events, one
// after another. By default, their unclassified errors are ignored. What they ask
// to be patched is thrown away.
//
// Functions that fail are remembered for as long as the object exists: see
// [Failure]. Objects for which nothing fails cost nothing.
//
// # Assumptions
//
// There is one call at a time for one object; calls for different objects may
// run at the same time.
type Indexers struct {
	Functions      []Function       // in the order of declaration
	DefaultBackoff time.Duration    // pause after an unclassified error that is to be tried again
	Observe        execute.Observer // told of calls; nil for nobody

	mu      sync.Mutex
	failing map[string]Failures // by object
}

// Update does for an event, other than a deletion, what is to be done in the
// indices. Each function gets a request of its own, which the caller makes.
// Panics of filters are passed on; those of functions are errors.
//
// If the context is done, the remaining functions are not called, and the values
// in their indices stay.
func (x *Indexers) Update(ctx context.Context, request func() *registry.Request) {
	for _, f := range x.Functions {
		if ctx.Err() != nil {
			return
		}
		x.update(ctx, f, request())
	}
}

func (x *Indexers) update(ctx context.Context, f Function, req *registry.Request) {
	object, id, now := req.Body.Key(), f.Handler.ID, time.Now()
	before := x.failures(object)[id]
	req.Handler = f.Handler
	if !f.Handler.MatchesObject(req) || !before.May(now) {
		f.Into.Remove(object)
		return
	}
	begun := before.begun(now)
	outcome := x.attempt(f.Handler, req, begun).Make(ctx)
	verdict, after := begun.After(outcome, f.Handler.Limits.OnError.Or(registry.Ignore), time.Now())
	switch verdict {
	case Replaced:
		f.Into.Replace(object, outcome.Result)
	case Removed:
		f.Into.Remove(object)
	}
	if before != after {
		x.remember(object, id, after)
	}
}

func (x *Indexers) attempt(h *registry.Handler, req *registry.Request, f Failure) execute.Attempt {
	req.Retry, req.Started = f.Retries, f.Started
	return execute.Attempt{
		Title: "Indexer", ID: h.ID, Limits: h.Limits, Retries: f.Retries, Started: f.Started,
		DefaultBackoff: x.DefaultBackoff, DefaultMode: registry.Ignore,
		Log: terse(req.Log), Observe: x.Observe,
		Call: func(ctx context.Context) (any, error) {
			switch err := h.Call(ctx, req); {
			case err == nil:
				return req.Result, nil
			case !keeps(err):
				return nil, err
			}
			return nil, nil
		},
	}
}

// Remove takes an object that is gone out of all indices, without calling any
// function, and forgets what failed for it.
func (x *Indexers) Remove(object string) {
	for _, f := range x.Functions {
		f.Into.Remove(object)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.failing, object)
}

// Failing is the number of objects for which some function fails.
func (x *Indexers) Failing() int {
	x.mu.Lock()
	defer x.mu.Unlock()
	return len(x.failing)
}

func (x *Indexers) failures(object string) Failures {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.failing[object]
}

func (x *Indexers) remember(object, id string, one Failure) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if all := x.failing[object].With(id, one); all == nil {
		delete(x.failing, object)
	} else {
		if x.failing == nil {
			x.failing = map[string]Failures{}
		}
		x.failing[object] = all
	}
}
