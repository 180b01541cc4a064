package gopf

import (
	"time"

	"gopf.dev/gopf/internal/handler"
)

// ChangeOption is an option of a change handler: OnCreate, OnUpdate, OnDelete,
// OnResume, OnField, On and [Change.Sub]. For sub-handlers, a handle with filters is an
// option as well; see [Change.Filter].
type ChangeOption interface{ change(*changeSpec) }

type changeSpec struct {
	limits   handler.Limits
	optional bool
	deleted  bool
	formerly []string
	filters  *filters // of a sub-handler; nil means none
	skip     bool     // declared with If(false)

	after     []*SubHandler // of a sub-handler: its dependencies
	last      bool          // of a sub-handler: declared with Finally
	misplaced bool          // an option that is for children only
}

// RetryOption limits the attempts of a handler and sets the delays between them. It is
// valid for all handlers except event and admission handlers, which are not retried.
type RetryOption interface {
	ChangeOption
	DaemonOption
	TimerOption
	ReconcileOption
	retry(*handler.Limits)
}

type retryOption func(*handler.Limits)

func (o retryOption) retry(l *handler.Limits) { o(l) }
func (o retryOption) change(s *changeSpec)    { o(&s.limits) }
func (o retryOption) daemon(s *daemonSpec)    { o(&s.limits) }
func (o retryOption) timer(s *timerSpec)      { o(&s.limits) }

// limits returns the effect of the options.
func limits(opts []RetryOption) (l handler.Limits) {
	for _, o := range opts {
		o.retry(&l)
	}
	return l
}

// MaxAttempts limits the number of calls of a handler for one change. Default: no limit. 0
// means that the handler is never called and fails at once.
//
// The first call counts: with MaxAttempts(3), the handler fails with the error of its third
// call, without another delay. Calls that end with [RetryAfter] or [Wait] count, and so
// does every call of a handler whose sub-handlers are unfinished. Calls that were
// interrupted by a shutdown do not count. The number is stored on the object and
// survives restarts. Calls before the end of a delay, because of [Resource.Wake], [WakeOwner] or a
// change of a child, do not count either, and [Subject].Retry stays the same: clients in other
// namespaces may cause them. For daemons and timers, it is kept in memory and applies to one
// series of attempts.
//
// A handler that has failed this way is logged with an error that matches [ErrTooManyAttempts].
// A negative n is a declaration error.
func MaxAttempts(n int) RetryOption {
	return retryOption(func(l *handler.Limits) { l.Retries = handler.Some(n) })
}

// Timeout limits the total time of a handler for one change, from the start of its
// first call. Default: no limit.
//
// Delays between calls count, and so does the time in which the operator is not
// running. Waiting for a free worker does not count; see
// [ExecutionSettings.MaxWorkers]. When the time is over, the context of a running call
// is canceled with the cause [ErrTimeout]. If the delay before the next call would
// exceed the timeout, the handler fails at once.
//
// For daemons and timers, the timeout applies to one series of attempts and is kept in
// memory. A duration below 1 ms, such as Timeout(30), is a declaration error, because
// the unit is missing.
func Timeout(d time.Duration) RetryOption {
	return retryOption(func(l *handler.Limits) { l.Timeout = handler.Some(d) })
}

// Backoff sets the delay before the next call after an error that is neither temporary
// nor permanent. The delay is constant; it does not grow. Default:
// [ExecutionSettings.DefaultBackoff], which is 60 s, except for NotFound and Conflict
// errors of the API server: these are retried after 1, 2, 4, … s, up to the default. 0
// means that the handler is called again at once.
//
// [RetryAfter] and [Wait] set the delay of a single error instead. A negative duration,
// or one below 1 ms, is a declaration error.
func Backoff(d time.Duration) RetryOption {
	return retryOption(func(l *handler.Limits) { l.Backoff = handler.Some(d) })
}

// ErrorsTemporary retries a handler after errors that are neither temporary nor
// permanent, including panics. The delay is the [Backoff]. It is the default, except
// for index functions.
func ErrorsTemporary() RetryOption { return onError(handler.Retry) }

// ErrorsPermanent lets a handler fail without further attempts after errors that are
// neither temporary nor permanent, including panics; see [Permanent].
func ErrorsPermanent() RetryOption { return onError(handler.Fail) }

// ErrorsIgnored logs errors that are neither temporary nor permanent, including panics,
// and treats the call as a success. It is the default of index functions.
func ErrorsIgnored() RetryOption { return onError(handler.Ignore) }

func onError(mode handler.ErrorMode) RetryOption {
	return retryOption(func(l *handler.Limits) { l.OnError = handler.Some(mode) })
}

type changeOption func(*changeSpec)

func (o changeOption) change(s *changeSpec) { o(s) }

type optional struct{}

func (optional) change(s *changeSpec) { s.optional = true }
func (optional) daemon(s *daemonSpec) { s.optional = true }
func (optional) timer(s *timerSpec)   { s.optional = true }

// Optional keeps a deletion handler, daemon or timer from blocking the deletion of an
// object: the object gets no finalizer for it. A deletion handler then runs only if the
// object still exists when the operator sees the deletion, for example because of
// another finalizer. Daemons and timers are stopped when the object is gone.
func Optional() interface {
	ChangeOption
	DaemonOption
	TimerOption
} {
	return optional{}
}

// AlsoDeleted calls a resume handler even for objects that are being deleted.
func AlsoDeleted() ChangeOption { return changeOption(func(s *changeSpec) { s.deleted = true }) }

// Formerly declares former ids of a renamed handler. Records under these ids are used
// for the handler and then removed, so handlings in progress continue.
func Formerly(ids ...string) ChangeOption {
	return changeOption(func(s *changeSpec) { s.formerly = append(s.formerly, ids...) })
}

// Finally makes a sub-handler wait until all others that are declared before the run have
// finished, whatever their outcomes, as a deferred call in Go. Use it to release resources
// of the others, or to report; [SubHandler.Outcome] returns the outcomes.
//
//	c.Sub("unlock", unlock, gopf.Finally())
//
// Several of them have no order. A handler that fails permanently itself, by its limits or
// its own error, ends without them. On other handlers than sub-handlers, it is a
// declaration error.
func Finally() ChangeOption { return changeOption(func(s *changeSpec) { s.last = true }) }

// If declares a sub-handler only if the condition is true. On other handlers it is a
// declaration error.
func If(condition bool) ChangeOption {
	return changeOption(func(s *changeSpec) { s.skip = s.skip || !condition })
}
