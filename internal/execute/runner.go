package execute

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// Runner runs the handlers of one object for one cause.
type Runner struct {
	Reason         cause.Reason
	Lifecycle      registry.Lifecycle
	DefaultBackoff time.Duration
	Log            *slog.Logger
	Observe        Observer // nil for nobody

	State *progress.State // of all handlers; updated
	Patch *patch.Patch    // what handlers ask for is added here

	// Urgent tells which handlers are to be called now even if they are delayed;
	// nil for none.
	Urgent func(id string) bool

	// Load reads the records of sub-handlers, which are known only when they
	// are declared.
	Load func(ctx context.Context, ids []string) (map[string]storage.Record, error)
	// Request makes the request for one call, with all but what is the call's own.
	Request func() *registry.Request

	mu      sync.Mutex // of the state and the patch, while handlers run in parallel
	ran     int
	failure error
}

// Ran is how many calls were made, sub-handlers included.
func (r *Runner) Ran() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ran
}

// Pass runs once those of the handlers, which must be selected in the state,
// that are due and chosen by the lifecycle. An error means that the framework
// failed, not a handler.
func (r *Runner) Pass(ctx context.Context, handlers registry.Set) error {
	return r.pass(ctx, handlers, r.Lifecycle, 1)
}

func (r *Runner) pass(ctx context.Context, handlers registry.Set, lifecycle registry.Lifecycle, parallel int) error {
	byID := map[string]*registry.Handler{}
	for _, h := range handlers {
		byID[h.ID] = h
	}
	slots := make(chan struct{}, max(1, parallel))
	var calls sync.WaitGroup
	for _, chosen := range lifecycle(r.due(handlers)) {
		h := byID[chosen.ID]
		if h == nil || ctx.Err() != nil {
			continue
		}
		slots <- struct{}{}
		call := func() { defer func() { <-slots }(); r.call(ctx, h) }
		if parallel > 1 {
			calls.Go(call)
		} else {
			call()
		}
	}
	calls.Wait()
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.failure
}

func (r *Runner) due(handlers registry.Set) []registry.Due {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, len(handlers))
	for i, h := range handlers {
		ids[i] = h.ID
		if r.Urgent != nil && r.Urgent(h.ID) {
			r.State.Hasten(ids[i : i+1])
		}
	}
	var due []registry.Due
	for _, id := range r.State.Due(ids, time.Now()) {
		record := r.State.Record(id)
		due = append(due, registry.Due{ID: id, Retries: record.Retries, Started: record.Started})
	}
	return due
}

// call makes one attempt of one handler and notes how it ended.
func (r *Runner) call(ctx context.Context, h *registry.Handler) {
	r.mu.Lock()
	record := r.State.Record(h.ID)
	r.ran++
	r.mu.Unlock()
	subs := &subs{runner: r, parent: h}
	req := r.Request()
	req.Handler, req.Retry, req.Started = h, record.Retries, record.Started
	if of := req.Key; of != nil {
		req.Key = func() string { return of() + "/" + h.ID }
	}
	req.Patch = &patch.Patch{}
	req.RunSubs = subs.run

	outcome := Attempt{
		Title: "Handler", ID: h.ID, Limits: h.Limits,
		Retries: record.Retries, Started: record.Started,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: registry.Retry,
		Log: r.Log, Observe: r.Observe,
		Call: func(ctx context.Context) (any, error) {
			err := h.Call(ctx, req)
			if unfinished := subs.unfinished(); unfinished != nil {
				return nil, unfinished
			}
			if err != nil {
				return nil, err
			}
			return ToJSON(req.Result)
		},
	}.Make(ctx)
	r.note(h, req, subs, outcome)
}

// note keeps what came of a call.
func (r *Runner) note(h *registry.Handler, req *registry.Request, subs *subs, outcome Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Patch.Absorb(req.Patch)
	now := time.Now()
	if _, unfit := outcome.Err.(*registry.UndecodableError); unfit && outcome.Void {
		req.Post("Warning", "Undecodable", "The object does not fit the handler '"+h.ID+"': "+outcome.Err.Error())
	}
	if outcome.Void || subs.failed {
		r.State.Postpone(h.ID, now.Add(outcome.Delay.Or(0)))
		return
	}
	r.State.Attempted(h.ID, progress.Attempt{
		Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message,
		Delay: outcome.Delay, Subs: subs.refs(),
	}, now)
	if outcome.Err == nil && outcome.Result != nil {
		Deliver(r.Patch, h.ID, outcome.Result)
	}
}

// Deliver puts a handler's result into the status. The fields of an object are
// merged with those that other calls have put there.
func Deliver(p *patch.Patch, id string, result any) {
	if fields, ok := result.(map[string]any); ok {
		for key, v := range fields {
			p.Set(v, "status", id, key)
		}
		if len(fields) > 0 {
			return
		}
	}
	p.Set(result, "status", id)
}

// ToJSON makes what JSON decodes to of a user's value.
func ToJSON(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	decoded, err := jsonvalue.Of(v)
	if err != nil {
		return nil, &registry.PermanentError{Err: fmt.Errorf("the result cannot be stored as JSON: %w", err)}
	}
	return decoded, nil
}
