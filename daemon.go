package gopf

import (
	"context"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/registry"
)

// Daemon is what a daemon is told about its object.
type Daemon[T Object] struct {
	*Subject[T]
	call *daemon.Call
}

// Current is a copy of the object as it was last seen; Object stays as it was
// when the daemon was called. If the last one does not fit T, it is Object. It may
// be used from any goroutine.
func (d *Daemon[T]) Current() T {
	if obj, err := decode[T](d.call.Current()); err == nil {
		return obj
	}
	return d.Object
}

// Stopping is closed when the daemon should come to its end; with [StopGrace],
// that long before its context is cancelled.
func (d *Daemon[T]) Stopping() <-chan struct{} { return d.call.Stopping() }

// Flush sends what is in Patch now rather than when the daemon returns. It does
// so also while the daemon is being stopped.
func (d *Daemon[T]) Flush(ctx context.Context) error { return d.call.Flush(ctx) }

// Tick is what a timer is told about its object.
type Tick[T Object] struct {
	*Subject[T]
	call *daemon.Call
}

// Next makes the next call come after d instead of the interval, once.
func (t *Tick[T]) Next(d time.Duration) { t.call.Next(d) }

type (
	// DaemonFunc accompanies an object for as long as it lives. It should return
	// when its context is cancelled; [context.Cause] tells why it was.
	//
	// One that returns nil is not called again in this process. Errors mean what
	// they mean for [ChangeFunc], except that attempts are counted in memory only.
	DaemonFunc[T Object] func(context.Context, *Daemon[T]) error

	// TimerFunc is called for an object again and again.
	TimerFunc[T Object] func(context.Context, *Tick[T]) error
)

// Daemon runs fn beside every object, from when it is first seen until it is
// deleted, does not match the filters anymore, or the operator stops. Deletions
// wait for it, unless it is [Optional].
func (r *Resource[T]) Daemon(id string, fn DaemonFunc[T], opts ...DaemonOption) {
	var spec daemonSpec
	for _, o := range opts {
		o.daemon(&spec)
	}
	r.op.checkSpans(id, span{"StopGrace", spec.stopGrace}, span{"StopTimeout", spec.stopTimeout.Or(0)}, span{"StopPolling", spec.polling})
	r.background(id, fn == nil, spec.backgroundSpec, &daemon.Spec{
		StopGrace: spec.stopGrace, StopTimeout: spec.stopTimeout, Polling: spec.polling,
		Call: func(ctx context.Context, call *daemon.Call) error {
			var s *Subject[T]
			var err error
			// It runs for long: what decoding leaves on the stack must not stay.
			daemon.Apart(func() { s, err = newSubject[T](call.Request) })
			if err != nil {
				return &registry.UndecodableError{Err: err}
			}
			return classify(fn(ctx, &Daemon[T]{s, call}))
		},
	})
}

// Timer calls fn for every object in the interval, which counts from the end of
// one call to the start of the next, unless it is [Sharp]. With an interval of 0
// it is called once; with [Idle], once after each series of changes.
func (r *Resource[T]) Timer(id string, every time.Duration, fn TimerFunc[T], opts ...TimerOption) {
	var spec timerSpec
	for _, o := range opts {
		o.timer(&spec)
	}
	r.op.checkSpans(id, span{"the interval", every}, span{"Idle", spec.idle})
	if spec.sharp && every == 0 {
		r.op.problem("timer %q: Sharp needs an interval", id)
	}
	r.background(id, fn == nil, spec.backgroundSpec, &daemon.Spec{
		Timer: true, Interval: every, Sharp: spec.sharp, Idle: spec.idle,
		Call: func(ctx context.Context, call *daemon.Call) error {
			s, err := newSubject[T](call.Request)
			if err != nil {
				return &registry.UndecodableError{Err: err}
			}
			return classify(fn(ctx, &Tick[T]{s, call}))
		},
	})
}

// background declares what runs beside objects.
func (r *Resource[T]) background(id string, missing bool, b backgroundSpec, spec *daemon.Spec) {
	if missing {
		r.op.problem("handler %q has no function", id)
		return
	}
	r.op.checkSpans(id, span{"InitialDelay", b.delay})
	spec.InitialDelay = b.initialDelay
	spec.Handler = &registry.Handler{
		Family: registry.Background, ID: storedID(id, r.change), Where: caller(), Of: r.of, Select: r.selected, Managed: r.managed,
		Criteria: r.criteria, Change: r.change, When: r.when,
		Limits: b.limits, Mandatory: !b.optional,
	}
	r.op.daemons[spec.Handler] = spec
	r.op.declare(spec.Handler)
}

// DaemonOption tunes a daemon.
type DaemonOption interface{ daemon(*daemonSpec) }

// TimerOption tunes a timer.
type TimerOption interface{ timer(*timerSpec) }

type backgroundSpec struct {
	limits       registry.Limits
	optional     bool
	delay        time.Duration // of InitialDelay
	initialDelay func(*registry.Request) time.Duration
}

type daemonSpec struct {
	backgroundSpec
	stopGrace, polling time.Duration
	stopTimeout        registry.Opt[time.Duration]
}

type timerSpec struct {
	backgroundSpec
	sharp bool
	idle  time.Duration
}

// SpawnOption is for what runs beside objects: daemons and timers.
type SpawnOption func(*backgroundSpec)

func (o SpawnOption) daemon(s *daemonSpec) { o(&s.backgroundSpec) }
func (o SpawnOption) timer(s *timerSpec)   { o(&s.backgroundSpec) }

// InitialDelay is the time between the first sight of an object and the first
// call.
func InitialDelay(d time.Duration) SpawnOption {
	return func(s *backgroundSpec) {
		s.delay, s.initialDelay = d, func(*registry.Request) time.Duration { return d }
	}
}

// InitialDelayBy is [InitialDelay] with the time depending on the object.
func InitialDelayBy[T Object](fn func(*Subject[T]) time.Duration) SpawnOption {
	return func(b *backgroundSpec) {
		b.initialDelay = func(req *registry.Request) time.Duration {
			s, err := newSubject[T](req)
			if err != nil {
				return 0 // the call will tell
			}
			return fn(s)
		}
	}
}

type daemonOption func(*daemonSpec)

func (o daemonOption) daemon(s *daemonSpec) { o(s) }

// StopGrace is how long a daemon that is to stop goes on with its context as it
// is; only [Daemon.Stopping] tells it. The default is not at all.
func StopGrace(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.stopGrace = d })
}

// StopTimeout is how long a daemon may go on after its context was cancelled,
// before it is left behind and the object is let go. The default is for as long
// as it likes.
func StopTimeout(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.stopTimeout = registry.Some(d) })
}

// StopPolling is the time between log lines about a daemon that does not stop;
// the default is Settings.Background.CancellationPolling.
func StopPolling(d time.Duration) DaemonOption {
	return daemonOption(func(s *daemonSpec) { s.polling = d })
}

type timerOption func(*timerSpec)

func (o timerOption) timer(s *timerSpec) { o(s) }

// Idle makes a timer wait until the object has not changed for that long.
func Idle(d time.Duration) TimerOption { return timerOption(func(s *timerSpec) { s.idle = d }) }

// Sharp makes the interval count from the start of one call to the start of the
// next, whatever time the call takes.
func Sharp() TimerOption { return timerOption(func(s *timerSpec) { s.sharp = true }) }
