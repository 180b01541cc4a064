// Package daemon runs daemons, which are called once per object and keep running, and
// timers, which are called repeatedly.
//
// Pure functions decide when a task is called next, and how a call that does not stop
// is handled ([Spec.next], [stop.next]). A [Task] acts on these decisions.
package daemon

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// Set runs the daemons and timers of one resource.
//
// # Flow
//
//  1. Every event of an object is passed to [Set.Sight]. It spawns a [Task] of
//     the [Object] for each matching spec without one.
//  2. A waiting task is only an entry of the clock. When it is due, a goroutine
//     makes the call, writes its result, and ends. A timer may wait in the line of its
//     namespace before that.
//  3. A failed attempt is retried after its backoff. A timer is called again
//     according to its schedule. All other tasks that end are over for this
//     process.
//  4. A deletion, a mismatch of the filters, a pause or the exit of the operator
//     stop a task. A waiting task ends at once. A running call is notified by the
//     channel [Call.Stopping]; then its context is canceled; then it is abandoned.
//  5. The end of a task that ran wakes the object. Its finalizer can then be
//     removed, or the task be spawned again.
//  6. After a pause of its object, a timer continues its schedule: it is called when
//     it would have been due without the pause, or at once if that moment has passed.
//     All other tasks start as for a new object.
//
// # Guarantees
//
// One task of one object never has two calls at a time, whatever happens to the object
// meanwhile. The result of a call is written before the next call, however long that
// takes, and the call is not repeated for it. A waiting task has no goroutine. A stop
// proceeds by itself: it needs neither turns of the object nor the object. No task is
// spawned between Pause and Resume, or after Exit.
//
// # Assumptions
//
// Calls of Sight for one object are sequential. All other methods are safe for
// concurrent use. The clock runs until Exit returns.
//
// # Caveats
//
// Go cannot end a goroutine. A call that neither returns nor observes its context keeps
// running when it is abandoned, which is logged. Its task is not spawned again until it
// ends. Attempts are counted in memory only: a new process starts at zero. The idle
// time of an object counts from the first sight at which a spec matched.
type Set struct {
	Config

	life func() context.Context // for writes: it outlives all calls
	die  context.CancelFunc

	halted atomic.Pointer[error] // why no task is spawned; nil means that tasks are
	packer object.Packer         // for the bodies of all objects
	lines  lines

	mu      sync.Mutex
	objects map[*Object]struct{} // those with tasks
	moving  int                  // tasks that are being called or written for
	quiet   chan struct{}        // closed when moving is 0; nil means that Settle does not wait
}

// Config configures a [Set].
type Config struct {
	Specs []*Spec
	// Clock must call (*Task).Ring.
	Clock *alarm.Clock[*Task]
	// Write sends a patch of an object, with retries as long as they make sense. A
	// deleted object may result in [apply.ErrGone] or in no error.
	Write func(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) (*object.Body, error)
	// Wake gives an object a turn.
	Wake func(key string)
	// Observe is called for each call of a handler. May be nil.
	Observe execute.Observer
	// Called is called for each call of a handler, with the uid of the object. May be nil.
	Called func(uid, id string, o execute.Outcome, took time.Duration)
	// Entrance controls the start of calls. May be nil.
	Entrance *execute.Entrance
	// Room returns how a call of a daemon or a timer on the object waits for memory; nil means
	// that it does not wait. The object must not be kept: others may wait at the same time.
	// Room itself may be nil.
	Room func(body *object.Body, spec *Spec) Wait
	// Admit counts a call of a timer, with its write, until leave is called. size is the bytes of
	// the JSON of the object. A nil leave means that the running handlers of the namespace take
	// too much memory: then again is called once when there is room, without any lock held. Admit
	// itself may be nil: then no timer waits.
	Admit func(lane Lane, size int, again func()) (leave func())
	// Outages limits log lines about failures of the API server. May be nil.
	Outages *kube.Outages

	DefaultBackoff time.Duration   // after unclassified errors
	ErrorDelays    []time.Duration // pauses after failed writes; the last one repeats
	Jitter         jitter.Source   // shortens ErrorDelays; nil means exact delays
	Polling        time.Duration   // interval of log lines about calls that do not stop; 0 means 60 s
	ExitGrace      time.Duration   // time for calls of timers to return when the operator exits
}

// Sighting is an observation of an object.
type Sighting struct {
	// Request is the request for filters. Its body is the newest version.
	Request *handler.Request
	// Key is the key of the object, if the caller keeps it anyway: a copy per object would take
	// memory. Default: a copy of that of the body.
	Key string
	// Changed is true for a watch event if the essence differs from the last handled
	// one, or was never handled. It restarts the idle time.
	Changed bool
	// Unguarded is true if the object has no finalizer yet. Tasks that its deletion
	// must wait for are spawned at the next sight.
	Unguarded bool
	// Paused is true if the object is paused: all tasks stop with [ErrPaused]. Timers
	// continue their schedules at the first sight after the pause.
	Paused bool
	// Again returns the requests for later calls. It is kept as long as the object has
	// tasks.
	Again func(*object.Body) *handler.Request
}

// NewSet returns a set without tasks.
func NewSet(c Config) *Set {
	s := &Set{Config: c, objects: map[*Object]struct{}{}}
	life, die := context.WithCancel(context.Background())
	s.life, s.die = func() context.Context { return life }, die
	return s
}

// Sight spawns and stops tasks according to the object's version. It takes the state of
// the object, nil at first, and returns the new state. nil means that there is nothing
// to keep.
//
// due is the time until the next stage of stopping the calls that a deletion of the
// object must wait for; it is unset if there are none. The object is also woken when
// one of them ends or is abandoned.
func (s *Set) Sight(o *Object, seen Sighting) (kept *Object, due handler.Opt[time.Duration]) {
	r := seen.Request
	var matching []*Spec
	if !r.Body.Deleting && !seen.Paused {
		matching = s.matching(r)
	}
	if o == nil {
		if len(matching) == 0 {
			return nil, due
		}
		o = &Object{set: s, key: cmp.Or(seen.Key, r.Body.Key()), again: seen.Again, touched: time.Now()}
	}
	// Users' code is called without a lock, so spawning takes two steps. No other
	// goroutine spawns tasks for this object meanwhile.
	var starts map[*Spec]time.Duration
	for _, spec := range o.missing(matching) {
		if seen.Unguarded && spec.Mandatory {
			continue
		}
		if starts == nil {
			starts = map[*Spec]time.Duration{}
		}
		starts[spec] = 0
		if spec.InitialDelay != nil {
			starts[spec] = spec.InitialDelay(r)
		}
	}
	return o.update(seen, matching, starts)
}

func (s *Set) matching(r *handler.Request) (matching []*Spec) {
	for _, spec := range s.Specs {
		if spec.matches(r) {
			matching = append(matching, spec)
		}
	}
	return matching
}

// Blocking reports whether a deletion of the object must wait for a task.
// Tasks that are over for this process do not count.
func (s *Set) Blocking(o *Object, r *handler.Request) bool {
	return slices.ContainsFunc(s.Specs, func(spec *Spec) bool {
		return spec.Mandatory && !o.isOver(spec) && spec.matches(r)
	})
}

// Patience returns the longest declared time for a task to stop.
func (s *Set) Patience() (longest time.Duration) {
	for _, spec := range s.Specs {
		longest = max(longest, spec.StopGrace+spec.StopTimeout.Or(0))
	}
	return longest
}

// polling returns the interval of log lines about a call that does not stop.
func (s *Set) polling(spec *Spec) time.Duration {
	for _, d := range []time.Duration{spec.Polling, s.Polling} {
		if d > 0 {
			return d
		}
	}
	return time.Minute
}

// pause returns the delay after a failed write, with jitter.
func (s *Set) pause(failures int) time.Duration {
	pause := time.Second
	if n := len(s.ErrorDelays); n > 0 {
		pause = s.ErrorDelays[min(failures, n-1)]
	}
	return s.Jitter.Shorten(pause, jitter.Slight)
}

// Wait waits until there is memory for a call, or until the context or the channel ends. It
// returns the function to call afterwards.
type Wait func(ctx context.Context, stopping <-chan struct{}) (leave func())
