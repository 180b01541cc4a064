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
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// Runner runs the handlers of one object for one cause. It is used for one pass.
type Runner struct {
	Reason         cause.Reason
	Lifecycle      handler.Lifecycle
	DefaultBackoff time.Duration
	Log            *slog.Logger
	Observe        Observer  // may be nil
	Entrance       *Entrance // may be nil

	State *progress.State // the records of all handlers; the runner updates it

	// Known is [Attempt.Known] of the handler with the id. It is not called concurrently.
	Known func(id string, err *handler.UndecodableError) bool

	// Urgent reports whether a delayed handler must be called now. nil means never.
	Urgent func(id string) bool

	// Load loads the records of sub-handlers, whose ids are known only when their
	// parent declares them.
	Load func(ctx context.Context, ids []string) (map[string]storage.Record, error)
	// Request returns a new request. The runner sets the fields that belong to the
	// individual call.
	Request func() *handler.Request
	// Cause returns the cause as a handler sees it. parent is the cause of the parent
	// handler; nil means a top-level handler. A nil Cause means that all handlers
	// see the cause of the request.
	Cause func(id string, parent *cause.Cause) *cause.Cause

	mu      sync.Mutex // protects State, calls, spared and failure while handlers run in parallel
	calls   []*call
	spared  []Spared
	failure error
}

// call is one call that was made.
type call struct {
	handler *handler.Handler
	cause   *cause.Cause
	parent  *call // the call of the parent handler; nil means a top-level handler
	subs    *subs
	attempt Attempt
	before  storage.Record // the record before the call
	early   bool           // the call is before the end of a delay, and the handler has a limit of attempts
	patch   *patch.Patch   // the changes that the handler requested
	result  *patch.Patch   // the handler's result in the status; nil means none
}

// Part is the change that one call requested, with its result.
type Part struct {
	Handler string // the id
	Patch   patch.Patch
	// Refuse turns the outcome of the call into this error, because the API server
	// refused the change. nil means that the refused change is only dropped.
	Refuse func(error)
}

// Ran returns the number of calls, including those of sub-handlers.
func (r *Runner) Ran() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.calls)
}

// Finished returns the ids of the handlers and sub-handlers that finished in this pass.
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

// Parts returns the changes that the calls requested, with their results. They are in
// the order of declaration; sub-handlers precede their parents. handlers has the
// declared handlers.
func (r *Runner) Parts(handlers handler.Set) []Part {
	r.mu.Lock()
	defer r.mu.Unlock()
	var parts []Part
	for _, c := range r.declared(handlers) {
		part := Part{Handler: c.handler.ID, Refuse: func(err error) { r.refuse(c, err) }}
		switch {
		case c.result == nil:
			part.Patch.Absorb(c.patch)
		case c.patch.Empty():
			part.Patch = *c.result // no copy is needed: handlers cannot modify it
		default:
			part.Patch.Absorb(c.patch)
			part.Patch.Absorb(c.result)
		}
		if !part.Patch.Empty() {
			parts = append(parts, part)
		}
	}
	return parts
}

// declared returns the calls in the order in which their handlers are declared.
func (r *Runner) declared(handlers handler.Set) []*call {
	if len(r.calls) < 2 {
		return r.calls
	}
	place := map[string]int{}
	for i, h := range handlers {
		place[h.ID] = i
	}
	calls := slices.Clone(r.calls)
	slices.SortStableFunc(calls, func(a, b *call) int {
		return cmp.Compare(place[a.top().handler.ID], place[b.top().handler.ID])
	})
	return calls
}

// top returns the call of the top-level handler.
func (c *call) top() *call {
	for c.parent != nil {
		c = c.parent
	}
	return c
}

// Pass calls each handler once that is due and that the lifecycle chooses. All handlers
// must be selected in the state. Pass does not return the errors of handlers: its error
// means that the framework failed.
func (r *Runner) Pass(ctx context.Context, handlers handler.Set) error {
	return r.pass(ctx, nil, handlers, r.Lifecycle, 1)
}

// pass calls the chosen handlers on behalf of the parent call. A nil parent means
// top-level handlers. At most parallel calls run concurrently.
func (r *Runner) pass(ctx context.Context, parent *call, handlers handler.Set, lifecycle handler.Lifecycle, parallel int) error {
	byID := map[string]*handler.Handler{}
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

// due returns the handlers that are due now, including urgent ones.
func (r *Runner) due(handlers handler.Set) []handler.Due {
	r.mu.Lock()
	defer r.mu.Unlock()
	ids := make([]string, len(handlers))
	for i, h := range handlers {
		ids[i] = h.ID
		if r.Urgent != nil && r.Urgent(h.ID) {
			r.State.Hasten(ids[i:i+1], time.Now())
		}
	}
	var due []handler.Due
	for _, id := range r.State.Due(ids, time.Now()) {
		record := r.State.Record(id)
		due = append(due, handler.Due{ID: id, Attempts: record.Retries, Started: record.Started})
	}
	return due
}

// call makes one attempt of one handler and records its outcome.
func (r *Runner) call(ctx context.Context, parent *call, h *handler.Handler) {
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
	c.early = r.State.TakeEarly(h.ID) && h.Limits.Retries.Set
	r.mu.Unlock()
	req.Handler, req.Retry, req.Started = h, c.before.Retries, c.before.Started
	if of := req.Key; of != nil {
		req.Key = func() string { return of() + "/" + h.ID }
	}
	req.Patch = &patch.Patch{}
	req.RunSubs, req.SubOutcome = c.subs.run, c.subs.outcome
	c.attempt = Attempt{
		Title: "Handler", ID: h.ID, Limits: h.Limits,
		Retries: c.before.Retries, Started: c.before.Started, Early: c.early,
		DefaultBackoff: r.DefaultBackoff, DefaultMode: handler.Retry,
		Log: r.Log, Own: &req.Log, Observe: r.Observe, Enter: r.Entrance.For(h, nil),
		Known: func(err *handler.UndecodableError) bool {
			r.mu.Lock()
			defer r.mu.Unlock()
			return r.Known != nil && r.Known(h.ID, err)
		},
		Call: func(ctx context.Context) (any, error) {
			err := h.Call(ctx, req)
			if unfinished := c.subs.unfinished(); unfinished != nil {
				return nil, unfinished
			}
			if err != nil {
				return nil, err
			}
			return resultOf(req, h.ID, parent != nil)
		},
	}
	r.note(c, req, c.attempt.Make(ctx))
}

const (
	// smallResult is the length of the texts in a result, in bytes, for which no memory is reserved.
	smallResult = 256 << 10
	// smallSubResult replaces smallResult for sub-handlers. An object may declare thousands of them,
	// and their results stay in memory until the end of the turn.
	smallSubResult = 16 << 10
	// largestResult is the limit of API servers for a request, in bytes.
	largestResult = 3 << 20
)

// resultOf returns the result of a call as JSON. It drops a result for which there is no memory: the
// handler has succeeded, and must not be called again.
func resultOf(req *handler.Request, id string, sub bool) (any, error) {
	size, small := jsonvalue.TextSize(req.Result, largestResult), smallResult
	if sub {
		small = smallSubResult
	}
	if size > largestResult || size > small && req.Reserve != nil && req.Reserve(size) != nil {
		req.Log.Warn("The result of a handler is too large, or there is no memory for it. It is dropped.", "handler", id, "bytes", size)
		return nil, nil
	}
	return ToJSON(req.Result)
}

// note records the outcome of a call.
func (r *Runner) note(c *call, req *handler.Request, outcome Outcome) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.calls = append(r.calls, c)
	c.patch = req.Patch
	if _, unfit := outcome.Err.(*handler.UndecodableError); unfit && outcome.Void {
		req.Post("Warning", "Undecodable", "The object does not fit the handler '"+c.handler.ID+"': "+text(outcome.Err))
	}
	r.conclude(c, outcome)
	if outcome.Err == nil && outcome.Result != nil {
		c.result = &patch.Patch{}
		Deliver(c.result, c.handler.ID, outcome.Result)
	}
}

// conclude updates the state with the outcome of a call.
func (r *Runner) conclude(c *call, outcome Outcome) {
	now := time.Now()
	if outcome.Void || c.subs.failed {
		r.State.Postpone(c.handler.ID, now.Add(outcome.Delay.Or(0)))
		r.State.Refer(c.handler.ID, c.subs.refs())
		return
	}
	r.State.Attempted(c.handler.ID, progress.Attempt{
		Final: outcome.Final, Failed: outcome.Err != nil, Message: outcome.Message,
		Delay: outcome.Delay, Subs: c.subs.refs(), Waited: waited(c.handler, outcome), Early: c.early,
	}, now)
}

// refuse turns the outcome of a call into an error, because the API server refused its
// change. Its patch and its result are dropped. If the handler is retried, its parents
// become unfinished.
func (r *Runner) refuse(c *call, err error) {
	outcome := c.attempt.Refused(err)
	r.mu.Lock()
	defer r.mu.Unlock()
	c.patch, c.result = &patch.Patch{}, nil
	r.State.Restore(c.handler.ID, c.before)
	r.conclude(c, outcome)
	for p := c.parent; p != nil; p = p.parent {
		delay := p.subs.delay(time.Now())
		if !delay.Set || !r.State.Record(p.handler.ID).Finished() {
			return
		}
		p.result = nil
		r.State.Restore(p.handler.ID, p.before)
		r.conclude(p, p.attempt.Refused(&handler.UnfinishedError{Delay: delay.Is}))
	}
}

// waited returns the wait before the call. It is 0 for handlers without a timeout,
// because only the timeout depends on it.
func waited(h *handler.Handler, o Outcome) time.Duration {
	if !h.Limits.Timeout.Set {
		return 0
	}
	return o.Waited
}

// Deliver puts a handler's result into the status, under the handler's id. The fields
// of an object are merged with those of earlier calls. The caller must not modify the
// result afterwards.
func Deliver(p *patch.Patch, id string, result any) {
	fields, _ := result.(map[string]any)
	if _, earlier := p.Lookup("status", id); !earlier || len(fields) == 0 {
		p.Set(result, "status", id)
		return
	}
	for key, v := range fields {
		p.Set(v, "status", id, key)
	}
}

// ToJSON converts a user's value to the value that its JSON decodes to. A value that
// cannot be encoded is a [handler.PermanentError].
func ToJSON(v any) (any, error) {
	if v == nil {
		return nil, nil
	}
	decoded, err := jsonvalue.Of(v)
	if err != nil {
		return nil, &handler.PermanentError{Err: fmt.Errorf("the result cannot be stored as JSON: %w", err)}
	}
	return decoded, nil
}
