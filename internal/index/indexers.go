package index

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// Target is an [Index] without type parameters.
type Target interface {
	// Replace replaces all values of the object. values must be a map of the index's
	// type.
	Replace(object string, values any)
	// Remove removes the object from the index if it is present.
	Remove(object string)
	// Len returns the number of keys.
	Len() int
}

// Function is a declared index function with its index.
type Function struct {
	// Handler has the id, the filters and the limits. Its Call stores the map, which
	// may be nil, in Request.Result. Without a result the values are kept.
	Handler *handler.Handler
	Into    Target
}

// Indexers update the indices for the objects of one resource.
//
// # Guarantees
//
// All matching functions are called for each event of an object, sequentially. By
// default, their errors are ignored unless they are temporary or permanent. Their
// patches are discarded.
//
// Failing functions are remembered as long as the object exists: see [Failure]. Objects
// without failures need no memory.
//
// # Assumptions
//
// Calls for one object are sequential; calls for different objects may be concurrent.
type Indexers struct {
	Functions      []Function       // in order of declaration
	DefaultBackoff time.Duration    // pause after an unclassified error that is retried
	Observe        execute.Observer // called for each call of a function; may be nil

	mu      sync.Mutex
	failing map[string]Failures // by object
}

// Update updates the indices for an event other than a deletion. It calls request for
// each function to get a separate request. Panics of filters are propagated; panics of
// functions are errors.
//
// If ctx ends, the remaining functions are not called, and the values in their indices
// stay.
func (x *Indexers) Update(ctx context.Context, request func() *handler.Request) {
	for _, f := range x.Functions {
		if ctx.Err() != nil {
			return
		}
		x.update(ctx, f, request())
	}
}

func (x *Indexers) update(ctx context.Context, f Function, req *handler.Request) {
	object, id, now := req.Body.Key(), f.Handler.ID, time.Now()
	before := x.failures(object)[id]
	req.Handler = f.Handler
	if !f.Handler.MatchesObject(req) || !before.May(now) {
		f.Into.Remove(object)
		return
	}
	started := before.started(now)
	outcome := x.attempt(f.Handler, req, started).Make(ctx)
	verdict, after := started.After(outcome, f.Handler.Limits.OnError.Or(handler.Ignore), time.Now())
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

func (x *Indexers) attempt(h *handler.Handler, req *handler.Request, f Failure) execute.Attempt {
	req.Retry, req.Started = f.Retries, f.Started
	return execute.Attempt{
		Title: "Indexer", ID: h.ID, Limits: h.Limits, Retries: f.Retries, Started: f.Started,
		DefaultBackoff: x.DefaultBackoff, DefaultMode: handler.Ignore,
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

// Remove removes a deleted object from all indices, without calling any function, and
// forgets its failures.
func (x *Indexers) Remove(object string) {
	for _, f := range x.Functions {
		f.Into.Remove(object)
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	delete(x.failing, object)
}

// Failing returns the number of objects for which a function fails.
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
