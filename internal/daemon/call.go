package daemon

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/progress"
)

// Call is the argument of one call of a daemon or timer. It belongs to the goroutine of
// the call, except Current, which is safe for concurrent use.
type Call struct {
	*handler.Request

	task     *Task
	stopping <-chan struct{}
	next     handler.Opt[time.Duration]
	wrote    atomic.Bool // the call has written through the API by itself
	early    bool        // see timing
}

// Current returns the newest version of the object. The body of the request is the
// version at the start of the call.
func (c *Call) Current() *object.Body {
	if body := c.task.object.Body(); body != nil {
		return body
	}
	return c.Body // the call is over, and so are all others
}

// Stopping returns a channel that is closed when the call should return.
func (c *Call) Stopping() <-chan struct{} { return c.stopping }

// Next sets the delay until the next call of a timer, instead of the interval. It
// applies if this call succeeds or fails permanently.
func (c *Call) Next(d time.Duration) { c.next = handler.Some(max(0, d)) }

// Flush sends the patch collected so far. It works even after the framework
// stops the call by canceling its context. After an error the changes stay in the
// patch, unless the API server refused them.
func (c *Call) Flush(ctx context.Context) error {
	p := *c.Patch
	if p.Empty() {
		return nil
	}
	*c.Patch = patch.Patch{}
	set := c.task.object.set
	ctx, cancel := unstopped(ctx, set.life())
	defer cancel()
	err := c.task.object.write(ctx, c.Current(), &p, !c.wrote.Swap(false))
	switch {
	case err == nil, errors.Is(err, apply.ErrGone):
		return nil
	case !apply.Refused(err):
		p.Absorb(c.Patch)
		*c.Patch = p
	}
	return fmt.Errorf("patch the object: %w", err)
}

// unstopped returns a context that is not canceled by a stop. It ends with the set.
func unstopped(ctx, life context.Context) (context.Context, context.CancelFunc) {
	lasting, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	forget := context.AfterFunc(life, func() { cancel(context.Cause(life)) })
	ignore := context.AfterFunc(ctx, func() {
		if why := context.Cause(ctx); !isStop(why) {
			cancel(why)
		}
	})
	return lasting, func() { forget(); ignore(); cancel(nil) }
}

// result is the outcome of one call that must be written.
type result struct {
	patch  *patch.Patch
	fresh  bool        // the call has not written through the API by itself
	refuse func(error) // turns the rejection of the patch into the outcome of the call
}

// observing returns the observer of the calls for the object. nil means that there is none.
func (o *Object) observing() execute.Observer {
	if o.set.Called == nil {
		return o.set.Observe
	}
	return func(id string, outcome execute.Outcome, took time.Duration) {
		if o.set.Observe != nil {
			o.set.Observe(id, outcome, took)
		}
		o.set.Called(o.key, id, outcome, took)
	}
}

// call makes one attempt and returns its result. The result is nil without a call.
func (t *Task) call(ctx context.Context, r *run) *result {
	o, spec := t.object, t.spec
	if wait := t.room(); wait != nil {
		defer wait(ctx, r.stopping)()
	}
	req := t.request()
	if spec.Timer && req.Room != nil { // a daemon may run for as long as its object exists
		var leave func()
		req.Hold, leave = req.Room(ctx)
		defer leave()
	}
	c := &Call{Request: req, task: t, stopping: r.stopping}
	if !t.start(c, r) {
		return nil
	}
	attempt := execute.Attempt{
		Title: spec.title(), ID: spec.ID, Limits: spec.Limits,
		Retries: req.Retry, Started: req.Started, Early: c.early,
		DefaultBackoff: o.set.DefaultBackoff, DefaultMode: handler.Retry,
		Log: req.Log, Own: &req.Log, Observe: o.observing(), Enter: o.set.Entrance.For(spec.Handler, r.stopping),
		Quiet: func(result any) bool { return spec.Timer && result == nil && req.Patch.Empty() && !c.wrote.Load() },
		Known: func(err *handler.UndecodableError) bool { return t.known(req.Body, err) },
		Call: func(ctx context.Context) (any, error) {
			if err := spec.Call(ctx, c); err != nil {
				return nil, t.judge(ctx, err)
			}
			return execute.ToJSON(req.Result)
		},
	}
	outcome := attempt.Make(kube.For(ctx, req.Body.Namespace))
	if outcome.Err == nil && outcome.Result != nil {
		execute.Deliver(req.Patch, spec.ID, outcome.Result)
	}
	before := t.note(outcome, c.next)
	return &result{req.Patch, !c.wrote.Load(), func(err error) {
		t.restore(before)
		t.note(attempt.Refused(err), handler.Opt[time.Duration]{})
	}}
}

// room returns how the call waits for memory. nil means that it does not wait. The unpacked
// object is not kept.
func (t *Task) room() Wait {
	body := t.object.Body()
	if t.object.set.Room == nil || body == nil {
		return nil
	}
	return t.object.set.Room(body, t.spec)
}

// known reports whether the error was logged before for this state of the object.
// Metadata and status are not part of it, because other controllers may write them often.
func (t *Task) known(body *object.Body, err *handler.UndecodableError) bool {
	rest := body.Members(func(name string) bool { return name != "metadata" && name != "status" })
	now := misfit{progress.BaseID(rest), err.Error()}
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	before := t.misfit
	t.misfit = &now
	return before != nil && *before == now
}

// request returns the request for a call. The stack of a daemon lives long, so the
// request is built apart.
func (t *Task) request() (req *handler.Request) {
	if t.spec.Timer {
		return t.object.again(t.current())
	}
	Apart(func() { req = t.object.again(t.current()) })
	return req
}

// current returns the newest state of the object in a separate body for this call. What
// the call decodes is freed with that body; it does not stay in memory with the object.
func (t *Task) current() *object.Body {
	if body := t.object.Body(); body != nil {
		return body.Undecoded()
	}
	return nil
}

// start records the start of a call. It returns false if the task is already
// stopping.
func (t *Task) start(c *Call, r *run) bool {
	req := c.Request
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	r.log = req.Log
	if t.stop != nil {
		return false
	}
	now := time.Now()
	if t.failing += now.Sub(t.started); t.retries == 0 {
		t.failing = 0
	}
	t.early = t.spec.Limits.Retries.Set && t.hurried && t.phase == failed && !t.unfit && now.Before(t.from.Add(t.pause))
	t.started, t.hurried, t.unfit, c.early = now, false, false, t.early
	req.Handler, req.Retry, req.Started = t.spec.Handler, int(t.retries), now.Add(-t.failing)
	if of := req.Key; of != nil {
		req.Key = func() string { return of() + "/" + t.spec.ID }
	}
	req.Patch, req.Wrote = &patch.Patch{}, func() { c.wrote.Store(true) }
	return true
}

// judge interprets an error that a call returns while it is stopping. A
// cancellation is no error then, and other errors are final because there is no further
// attempt.
func (t *Task) judge(ctx context.Context, err error) error {
	t.object.mu.Lock()
	stopped := t.stop
	t.object.mu.Unlock()
	switch {
	case stopped == nil:
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, stopped.why):
		return nil
	case errors.Is(context.Cause(ctx), execute.ErrStopping):
		return err // not counted as an attempt
	}
	return &handler.PermanentError{Err: err}
}

// note records the outcome of an attempt. It returns the number of failed attempts
// before it.
func (t *Task) note(outcome execute.Outcome, next handler.Opt[time.Duration]) (before int32) {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	before = t.retries
	if !outcome.Void {
		t.misfit = nil
	}
	switch {
	case outcome.Void: // not counted as an attempt
		t.phase, t.pause, t.unfit = failed, outcome.Delay.Or(0), true
	case !outcome.Final:
		t.phase, t.pause = failed, outcome.Delay.Or(0)
		if !t.early {
			t.retries++
		}
	case t.spec.Timer && next.Set:
		t.phase, t.pause, t.retries = chosen, next.Is, 0
	default:
		t.phase, t.retries = done, 0
	}
	return before
}

// restore sets the number of failed attempts.
func (t *Task) restore(retries int32) {
	t.object.mu.Lock()
	defer t.object.mu.Unlock()
	t.retries = retries
}

// send writes the result of a call. If the API server refuses the change, that becomes
// the outcome of the call. Any other error is retried.
func (t *Task) send(r *result) (err error) {
	if r == nil || r.patch.Empty() {
		return nil
	}
	defer func() {
		if v := recover(); v != nil { // in users' edits
			r.refuse(&execute.PanicError{Value: v, Stack: execute.PanicStack()})
			err = nil
		}
	}()
	err = t.object.write(t.object.set.life(), t.object.Body(), r.patch, r.fresh)
	switch {
	case errors.Is(err, apply.ErrGone):
		return nil
	case apply.Refused(err):
		r.refuse(fmt.Errorf("the API server refused the change: %w%s", err, apply.Advice(err, "")))
		return nil
	}
	return err
}
