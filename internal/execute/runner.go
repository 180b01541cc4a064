package execute

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
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
	Observe        Observer  // nil for nobody
	Entrance       *Entrance // that every call passes; may be nil

	State *progress.State // of all handlers; updated

	// Urgent tells which handlers are to be called now even if they are delayed;
	// nil for none.
	Urgent func(id string) bool

	// Load reads the records of sub-handlers, which are known only when they
	// are declared.
	Load func(ctx context.Context, ids []string) (map[string]storage.Record, error)
	// Request makes the request for one call, with everything except what belongs to
	// the call.
	Request func() *registry.Request
	// Cause is the cause as a handler sees it. parent is that of the handler which
	// declared it; nil for top-level handlers. nil means that all see the same.
	Cause func(id string, parent *cause.Cause) *cause.Cause

	mu      sync.Mutex // of the state and the calls, while handlers run in parallel
	calls   []*call
	failure error
}

// call is one call that was made.
type call struct {
	handler *registry.Handler
	cause   *cause.Cause
	parent  *call // whose sub-handler it is; nil for top-level handlers
	subs    *subs
	attempt Attempt
	before  storage.Record // the record before the call
	patch   *patch.Patch   // what the handler asked for
	result  *patch.Patch   // what it returned; nil for nothing
}

// Part is the change that one call asked for.
type Part struct {
	Handler string // its id
	Patch   patch.Patch
	// Refuse makes the refusal of the change the outcome of the call: the handler
	// failed with this error. nil means that the change is only dropped.
	Refuse func(error)
}

// Ran returns how many calls were made, sub-handlers included.
func (r *Runner) Ran() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// Finished returns the ids of the handlers that finished in this pass,
// sub-handlers included.
func (r *Runner) Finished() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var ids []string
	for _, c := range r.calls {
		if r.State.Record(c.handler.ID).Finished() {
			ids = append(ids, c.handler.ID)
		}
	}
	return ids
}

// Parts returns the changes that the calls asked for, with their results, in the
// order of declaration; those of sub-handlers before those of their parents.
// handlers are the declared ones.
func (r *Runner) Parts(handlers registry.Set) []Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	place := map[string]int{}
	for i, h := range handlers {
		place[h.ID] = i
	}
	calls := slices.Clone(r.calls)
	slices.SortStableFunc(calls, func(a, b *call) int {
		return cmp.Compare(place[a.top().handler.ID], place[b.top().handler.ID])
	})
	var parts []Part
	for _, c := range calls {
		part := Part{Handler: c.handler.ID, Refuse: func(err error) { r.refuse(c, err) }}
		part.Patch.Absorb(c.patch)
		if c.result != nil {
			part.Patch.Absorb(c.result)
		}
		if !part.Patch.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}

func (c *call) top() *call {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// Pass runs once those of the handlers, which must be selected in the state,
// that are due and chosen by the lifecycle. An error means that the framework
// failed, not a handler.
func (r *Runner) Pass(ctx context.Context, handlers registry.Set) error {
	return r.pass(ctx, nil, handlers, r.Lifecycle, 1)
}

func (r *Runner) pass(ctx context.Context, parent *call, handlers registry.Set, lifecycle registry.Lifecycle, parallel int) error {
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
		call := func() { defer func() { <-slots }(); r.call(ctx, parent, h) }
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

// call makes one attempt of one handler and notes its outcome.
func (r *Runner) call(ctx context.Context, parent *call, h *registry.Handler) {
	c := &call{handler: h, parent: parent}
	c.subs = &subs{runner: r, parent: c}
	req := r.Request()
	if r.Cause != nil {
		var inherited *cause.Cause
		if parent != nil {
			inherited = parent.cause
		}
		req.Cause = r.Cause(h.ID, inherited)
	}
	c.cause = req.Cause
	r.mu.Lock()
	c.before = r.State.Record(h.ID)
	r.mu.Unlock()
	req.Handler, req.Retry, req.Started = h, c.before.Retries, c.before.Started
	if of := req.Key; of != nil {
		req.Key = func() string { return of() + "/" + h.ID }
	}
	req.Patch = &patch.Patch{}
	req.RunSubs = c.subs.run
	c.attempt = Attempt{
		Title: "Handler", ID: h.ID, Limits: h.Limits,
		Retries: c.before.Retries, Started: c.before.Started,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: registry.Retry,
		Log: r.Log, Observe: r.Observe, Enter: r.Entrance.For(h, nil),
		Call: func(ctx context.Context) (any, error) {
			err := h.Call(ctx, req)
			if unfinished := c.subs.unfinished(); unfinished != nil {
				return nil, unfinished
			}
			if err != nil {
				return nil, err
			}
			return ToJSON(req.Result)
		},
	}
	r.note(c, req, c.attempt.Make(ctx))
}

// note keeps the outcome of a call.
func (r *Runner) note(c *call, req *registry.Request, outcome Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	c.patch = req.Patch
	if _, unfit := outcome.Err.(*registry.UndecodableError); unfit && outcome.Void {
		req.Post("Warning", "Undecodable", "The object does not fit the handler '"+c.handler.ID+"': "+text(outcome.Err))
	}
	r.conclude(c, outcome)
	if outcome.Err == nil && outcome.Result != nil {
		c.result = &patch.Patch{}
		Deliver(c.result, c.handler.ID, outcome.Result)
	}
}

// conclude makes the outcome of a call a part of the state.
func (r *Runner) conclude(c *call, outcome Outcome) {
	now := time.Now()
	if outcome.Void || c.subs.failed {
		r.State.Postpone(c.handler.ID, now.Add(outcome.Delay.Or(0)))
		r.State.Refer(c.handler.ID, c.subs.refs())
		return
	}
	r.State.Attempted(c.handler.ID, progress.Attempt{
		Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message,
		Delay: outcome.Delay, Subs: c.subs.refs(), Waited: waited(c.handler, outcome),
	}, now)
}

// refuse makes an error the outcome of a call whose change the API server refused.
// Its patch and its result are dropped. Handlers that have it as a sub-handler are
// unfinished if it is.
func (r *Runner) refuse(c *call, err error) {
	outcome := c.attempt.Refused(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.patch, c.result = &patch.Patch{}, nil
	r.State.Restore(c.handler.ID, c.before)
	r.conclude(c, outcome)
	for p := c.parent; p != nil; p = p.parent {
		delay := r.State.Delay(p.subs.ids, time.Now())
		if !delay.Set || !r.State.Record(p.handler.ID).Finished() {
			return
		}
		p.result = nil
		r.State.Restore(p.handler.ID, p.before)
		r.conclude(p, p.attempt.Refused(&registry.UnfinishedError{Delay: delay.Is}))
	}
}

// waited returns for how long the call waited without running, as far as that
// counts: for the timeout only.
func waited(h *registry.Handler, o Outcome) time.Duration {
	if !h.Limits.Timeout.Set {
		return 0
	}
	return o.Waited
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
