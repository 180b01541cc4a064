package gopf

import (
	"context"
	"log/slog"
	"slices"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/kind"
)

// Call describes one call of a handler, for [Operator.Around].
type Call struct {
	// Handler is the id of the handler, as in logs and records.
	Handler string
	// Type is the type of the handler: "change", "event", "daemon", "timer", "index",
	// "review", "reconcile", "startup", "cleanup", "login" or "probe". It is "turn" for
	// [Operator.AroundTurns].
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
	// Log is the logger of the call. A function of [Operator.Around] may replace it before
	// it calls next: the handler then gets the other logger, and its outcome is logged with it.
	Log *slog.Logger

	body *object.Body  // nil means that there is no object
	log  **slog.Logger // the logger in the argument of the handler
	own  **slog.Logger // the logger of lines about the outcome; nil means none
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

// AroundTurns calls fn at the beginning of each turn of an object, and the function that it
// returns at the end of the turn. In a turn, the operator calls the handlers of the object that
// are due, and writes their outcomes: handlers and requests get the context that fn returns,
// which must derive from its own. Daemons and timers do not run in turns. The call has the
// type "turn" and identifies the object; it has no handler and no logger. fn must be quick, and
// is called concurrently. It must be set before the operator runs. Of several functions, the
// first one is called first.
func (op *Operator) AroundTurns(fn func(ctx context.Context, turn *Call) (of context.Context, end func())) {
	if fn == nil {
		op.problem("AroundTurns has no function")
		return
	}
	op.hooks.turns = append(op.hooks.turns, fn)
}

// begin returns the function that begins turns. nil means that there is nothing to call.
func (h *hooks) begin() func(context.Context, kind.Info, *process.Memory, process.Occasion) (context.Context, func()) {
	if len(h.turns) == 0 {
		return nil
	}
	return func(ctx context.Context, of kind.Info, m *process.Memory, _ process.Occasion) (context.Context, func()) {
		call := &Call{Type: "turn", Resource: of, Namespace: m.Namespace(), Name: m.Name(), UID: m.UID()}
		var ends []func()
		for _, fn := range h.turns {
			var end func()
			ctx, end = fn(ctx, call) //nolint:fatcontext // each function gets the context of the one before, and they are few
			ends = append(ends, end)
		}
		return ctx, func() {
			for _, end := range slices.Backward(ends) {
				end()
			}
		}
	}
}

// Annotation returns an annotation of the object. "" means that the object does not have it,
// or that the call has no object or is a turn.
func (c *Call) Annotation(name string) string {
	if c.body == nil {
		return ""
	}
	text, _ := c.body.Annotations()[name].(string)
	return text
}

// hooks has what happens around the calls of all handlers. nil means nothing.
type hooks struct {
	lostEdits
	around []func(context.Context, *Call, func(context.Context) error) error
	turns  []func(context.Context, *Call) (context.Context, func())
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
	inner := fn
	fn = func(ctx context.Context) error {
		for _, to := range []**slog.Logger{c.log, c.own} {
			if to != nil {
				*to = c.Log
			}
		}
		return inner(ctx)
	}
	for i := len(h.around) - 1; i >= 0; i-- {
		next := fn
		fn = func(ctx context.Context) error { return h.around[i](ctx, c, next) }
	}
	return classify(fn(ctx))
}

// callOf returns a function that describes the call of a request. log is the logger in the
// argument of the handler.
func callOf(req *handler.Request, typ string, log **slog.Logger) func() *Call {
	return func() *Call {
		c := &Call{Type: typ, Resource: req.Resource, Retry: req.Retry, Log: req.Log, log: log, own: &req.Log}
		if req.Handler != nil {
			c.Handler = req.Handler.ID
		}
		if b := req.Body; b != nil {
			c.body, c.Namespace, c.Name, c.UID = b, b.Namespace, b.Name, b.UID
		}
		if req.Cause != nil {
			c.Reason = reasonOf(req.Cause.Reason)
		}
		return c
	}
}
