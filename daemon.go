package gopf

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
)

// Daemon is the argument of a daemon.
type Daemon[T Object] struct {
	*Subject[T]
	call *daemon.Call
}

// newDaemon decodes the object apart: a daemon runs for long, and its stack must not keep
// the memory of decoding.
func newDaemon[T Object](call *daemon.Call) (d *Daemon[T], err error) {
	daemon.Apart(func() {
		var s *Subject[T]
		if s, err = newSubject[T](call.Request); err == nil {
			s.Patch.current = call.Current
			d = &Daemon[T]{s, call}
		}
	})
	return d, err
}

// Current returns a copy of the newest known version of the object; Object stays as it
// was when the daemon was called. If the newest version cannot be decoded into T,
// Current returns Object. It is safe for concurrent use.
func (d *Daemon[T]) Current() T {
	if obj, err := decode[T](d.call.Current()); err == nil {
		return obj
	}
	return d.Object
}

// Stopping returns a channel that is closed when the daemon must stop. With
// [StopGrace], the context stays valid for the grace period after that.
func (d *Daemon[T]) Stopping() <-chan struct{} { return d.call.Stopping() }

// Flush sends the changes collected in Patch now, instead of when the daemon returns.
// It works even after ctx was canceled because the daemon must stop. After an error,
// the changes stay in Patch, unless the API server rejected them.
func (d *Daemon[T]) Flush(ctx context.Context) error {
	d.flushed = true
	return d.call.Flush(ctx)
}

// Tick is the argument of a timer function.
type Tick[T Object] struct {
	*Subject[T]
	call *daemon.Call
}

// Next sets the delay until the next call, once, instead of the interval. It applies if
// this call succeeds or fails permanently. A negative delay means 0.
func (t *Tick[T]) Next(d time.Duration) { t.call.Next(d) }

// Daemon runs fn in a goroutine for every matching object, from when the operator first
// sees the object until it is deleted, no longer matches the filters, or the operator
// pauses or stops. An object never has two running daemons with the same id.
//
// The object gets a finalizer: its deletion waits until fn has returned, or until
// [StopTimeout] is over. With [Optional] there is no finalizer. fn must return when its
// context is canceled; [context.Cause] has the reason, such as [ErrDeleted]:
//
//	dbs.Daemon("ping", func(ctx context.Context, d *gopf.Daemon[*Database]) error {
//		for {
//			select {
//			case <-ctx.Done():
//				return nil
//			case <-time.After(10 * time.Second):
//				d.Log.Info("Still here.", "size", d.Current().Spec.Size)
//			}
//		}
//	}, gopf.StopTimeout(5*time.Second))
//
// A daemon that returns nil is done: it is not started again in this process. Errors
// have the same meaning as for [ChangeFunc], except that attempts are counted in memory
// only. Changes in Patch are sent when fn returns; see [Daemon.Flush]. For periodic work,
// [Resource.Timer] is cheaper: a waiting timer needs no goroutine.
func (r *Resource[T]) Daemon(id string, fn func(context.Context, *Daemon[T]) error, opts ...DaemonOption) {
	var spec daemonSpec
	for _, o := range opts {
		o.daemon(&spec)
	}
	r.op.checkSpans(id, span{"StopGrace", spec.stopGrace}, span{"StopTimeout", spec.stopTimeout.Or(0)}, span{"StopPolling", spec.polling})
	r.background(id, fn == nil, spec.backgroundSpec, &daemon.Spec{
		StopGrace: spec.stopGrace, StopTimeout: spec.stopTimeout, Polling: spec.polling,
		Call: func(ctx context.Context, call *daemon.Call) error {
			d, err := newDaemon[T](call)
			if err != nil {
				return &handler.UndecodableError{Err: err}
			}
			defer r.op.hooks.check(d.Subject)
			return r.op.hooks.call(ctx, callOf(call.Request, "daemon", &d.Log), func(ctx context.Context) error { return fn(ctx, d) })
		},
	})
}

// Timer calls fn periodically for every matching object, as long as the object exists.
// The interval is the time from the end of one call to the start of the next; with
// [Sharp], from start to start. The first call comes when the operator first sees the
// object, or after [InitialDelay]. Calls for one object never overlap.
//
// An interval of 0 means a single call per process; with [Idle], one call after each
// series of changes. After an error, the next call comes after the delay of the error
// or the [Backoff], instead of the interval. A permanent failure does not end the
// timer: it is called again after its interval. The schedule is kept in memory and
// starts over with each process.
//
// The object gets a finalizer, and its deletion waits for a running call, whose context
// is canceled. With [Optional] there is no finalizer.
//
//	dbs.Timer("backup", 6*time.Hour, backup, gopf.Idle(time.Minute), gopf.Optional())
func (r *Resource[T]) Timer(id string, every time.Duration, fn func(context.Context, *Tick[T]) error, opts ...TimerOption) {
	var spec timerSpec
	for _, o := range opts {
		o.timer(&spec)
	}
	r.op.checkSpans(id, span{"the interval", every}, span{"Idle", spec.idle})
	if spec.sharp && every == 0 {
		r.op.problem("timer %q: Sharp requires an interval above 0", id)
	}
	r.background(id, fn == nil, spec.backgroundSpec, &daemon.Spec{
		Timer: true, Interval: every, Sharp: spec.sharp, Idle: spec.idle,
		Call: func(ctx context.Context, call *daemon.Call) error {
			s, err := newSubject[T](call.Request)
			if err != nil {
				return &handler.UndecodableError{Err: err}
			}
			defer r.op.hooks.check(s)
			return r.op.hooks.call(ctx, callOf(call.Request, "timer", &s.Log), func(ctx context.Context) error { return fn(ctx, &Tick[T]{s, call}) })
		},
	})
}

// background declares a daemon or a timer.
func (r *Resource[T]) background(id string, missing bool, b backgroundSpec, spec *daemon.Spec) {
	if missing {
		r.op.problem("handler %q has no function", id)
		return
	}
	r.op.checkSpans(id, span{"InitialDelay", b.delay})
	spec.InitialDelay = b.initialDelay
	spec.Handler = &handler.Handler{
		Family: handler.Background, ID: storedID(id, r.field), Where: caller(), Of: r.of, Type: typeOf[T](), Select: r.selected, HandOver: r.handOver, Managed: r.managed,
		Criteria: r.criteria, Change: r.field, When: r.when, WhenAt: r.whenAt,
		Limits: b.limits, Mandatory: !b.optional,
	}
	r.op.daemons[spec.Handler] = spec
	r.op.declare(spec.Handler)
}

// DaemonOption is an option of [Resource.Daemon].
type DaemonOption interface{ daemon(*daemonSpec) }

// TimerOption is an option of [Resource.Timer].
type TimerOption interface{ timer(*timerSpec) }

type backgroundSpec struct {
	limits       handler.Limits
	optional     bool
	delay        time.Duration // the value of InitialDelay
	initialDelay func(*handler.Request) time.Duration
}

type daemonSpec struct {
	backgroundSpec
	stopGrace, polling time.Duration
	stopTimeout        handler.Opt[time.Duration]
}

type timerSpec struct {
	backgroundSpec
	sharp bool
	idle  time.Duration
}

// backgroundOption is an option of both daemons and timers.
type backgroundOption func(*backgroundSpec)

func (o backgroundOption) daemon(s *daemonSpec) { o(&s.backgroundSpec) }
func (o backgroundOption) timer(s *timerSpec)   { o(&s.backgroundSpec) }

// InitialDelay sets the delay between the first sight of an object in this process and
// the first call. Default: 0.
func InitialDelay(d time.Duration) interface {
	DaemonOption
	TimerOption
} {
	return backgroundOption(func(s *backgroundSpec) {
		s.delay, s.initialDelay = d, func(*handler.Request) time.Duration { return d }
	})
}

// InitialDelayBy is [InitialDelay] with a delay that depends on the object, for example
// to spread the first calls. fn must be quick. It is not called for an object that
// cannot be decoded into T; the delay is then 0.
func InitialDelayBy[T Object](fn func(*Subject[T]) time.Duration) interface {
	DaemonOption
	TimerOption
} {
	return backgroundOption(func(b *backgroundSpec) {
		b.initialDelay = func(req *handler.Request) time.Duration {
			s, err := newSubject[T](req)
			if err != nil {
				return 0 // the call reports the error
			}
			return fn(s)
		}
	})
}

type daemonOption func(*daemonSpec)

func (o daemonOption) daemon(s *daemonSpec) { o(s) }

// StopGrace sets the time between the closing of [Daemon.Stopping] and the cancellation
// of the context. Use it for cleanup that needs a valid context. Default: 0.
func StopGrace(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.stopGrace = d })
}

// StopTimeout limits the time from the cancellation of a daemon's context to its return.
// Then it is abandoned: a warning is logged, and the deletion of the object proceeds.
// Default: no limit, so the deletion waits for the daemon.
func StopTimeout(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.stopTimeout = handler.Some(d) })
}

// StopPolling sets the interval of log lines about a daemon that does not stop.
// Default: Background.CancellationPolling of [Settings].
func StopPolling(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.polling = d })
}

type timerOption func(*timerSpec)

func (o timerOption) timer(s *timerSpec) { o(s) }

// Idle delays each call of a timer until the object has not changed for that long.
// Changes of the status do not count if the resource has change handlers. Default: 0.
func Idle(d time.Duration) TimerOption { return timerOption(func(s *timerSpec) { s.idle = d }) }

// Sharp measures the interval from the start of one call to the start of the next. If a
// call takes longer than the interval, the missed calls are skipped. It requires an
// interval.
func Sharp() TimerOption { return timerOption(func(s *timerSpec) { s.sharp = true }) }
