package gopf

import (
	"context"
	"log/slog"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
)

// Call describes one call of a handler, for [Operator.Around].
type Call struct {
	// Handler is the id of the handler, as in logs and records.
	Handler string
	// Type is the type of the handler: "change", "event", "daemon", "timer", "index",
	// "review", "reconcile", "startup", "cleanup", "login" or "probe".
	Type string
	// Reason is the reason of a change. It is 0 for other handlers.
	Reason Reason
	// Resource, Namespace, Name and UID identify the object. They are zero for handlers
	// without an object. In the review of a creation, the object may have no name and no
	// UID yet.
	Resource             kind.Info
	Namespace, Name, UID string
	// Retry is the number of earlier attempts.
	Retry int
	// Log is the logger of the call.
	Log *slog.Logger
}

// Around calls fn in place of each handler: for changes, sub-handlers, events, daemons,
// timers, indices, reviews, reconciliations and activities. fn must call next, and return
// its error or another one in its place. Use it for tracing, metrics, and for errors that
// have the same meaning in all handlers:
//
//	op.Around(func(ctx context.Context, call *gopf.Call, next func(context.Context) error) error {
//		err := next(ctx)
//		if errors.Is(err, errQuota) {
//			return gopf.RetryAfter(time.Minute, err)
//		}
//		return err
//	})
//
// The error of next is that of the handler, and the returned error has the same meaning as
// if the handler had returned it. A panic of the handler passes through fn. A handler that
// fn does not call counts as called. The context that fn passes to next should derive from
// its own. Of several functions, the first one is the outermost.
//
// Filters are not handlers. Around must be called before the operator runs; the order of
// declarations does not matter. fn is called concurrently.
func (op *Operator) Around(fn func(ctx context.Context, call *Call, next func(context.Context) error) error) {
	if fn == nil {
		op.problem("Around has no function")
		return
	}
	op.hooks.around = append(op.hooks.around, fn)
}

// hooks has what happens around the calls of all handlers. nil means nothing.
type hooks struct {
	lostEdits
	around []func(context.Context, *Call, func(context.Context) error) error
}

// check reports the lost edits of a handler that has returned.
func (h *hooks) check(s editable) {
	if h != nil {
		h.lostEdits.check(s)
	}
}

// call calls a handler with the functions around it, and classifies the error.
func (h *hooks) call(ctx context.Context, of func() *Call, fn func(context.Context) error) error {
	if h == nil || len(h.around) == 0 {
		return classify(fn(ctx))
	}
	c := of()
	for i := len(h.around) - 1; i >= 0; i-- {
		next := fn
		fn = func(ctx context.Context) error { return h.around[i](ctx, c, next) }
	}
	return classify(fn(ctx))
}

// callOf returns a function that describes the call of a request.
func callOf(req *handler.Request, typ string) func() *Call {
	return func() *Call {
		c := &Call{Type: typ, Resource: req.Resource, Retry: req.Retry, Log: req.Log}
		if req.Handler != nil {
			c.Handler = req.Handler.ID
		}
		if b := req.Body; b != nil {
			c.Namespace, c.Name, c.UID = b.Namespace, b.Name, b.UID
		}
		if req.Cause != nil {
			c.Reason = reasonOf(req.Cause.Reason)
		}
		return c
	}
}
