// Package daemon runs what accompanies objects for as long as they live: daemons,
// which are called once and run on, and timers, which are called again and again.
//
// When they are called next, and what is done about calls that do not stop, is
// decided by pure functions ([Spec.next], [stop.next]); a [Task] acts on it.
package daemon

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/internal/registry"
)

// Set is the daemons and timers of one resource, and those of them that run.
//
// # Flow
//
//  1. Every event of an object comes to [Set.Sight]. What matches and is not there
//     is spawned: it becomes a [Task] of the [Object].
//  2. A task waits as an entry of the clock. When its moment comes, a goroutine
//     makes the call, writes what the call asked for, and ends.
//  3. A failed attempt is made again after its pause, a timer is called again when
//     its schedule says so. Anything else that ends is over for this process.
//  4. Deletion, a mismatch of filters, a pause or the exit of the operator stop a
//     task. One that waits is gone at once. A call is told by the channel of
//     [Call.Stopping]; then its context is cancelled; then it is abandoned.
//  5. The end of a task that ran wakes the object, so that its finalizer can go,
//     or the task be spawned again.
//
// # Guarantees
//
// There are never two calls of one task of one object at a time, whatever
// happens to the object meanwhile. What a call asked for is written before the
// next call, however long that takes, and the call is not made again for it. A
// task that waits has no goroutine. Once a stop has begun, it goes on by itself:
// it needs neither turns of the object nor the object. Nothing is spawned between
// Pause and Resume, nor after Exit.
//
// # Assumptions
//
// Sight is called for an object by one goroutine at a time; all else may be called
// at any time from anywhere. The clock runs until Exit returns.
//
// # Caveats
//
// Go cannot end a goroutine. A call that neither returns nor heeds its context
// runs on when it is abandoned, which is logged, and its task is not spawned
// again until it ends. Attempts are counted in memory only: a new process starts
// anew. The time for which an object is idle counts from its first sight at which
// anything matched.
type Set struct {
	Config

	life func() context.Context // of what is written: it outlives all calls
	die  context.CancelFunc

	halted atomic.Pointer[error] // why nothing is spawned; nil if it is

	mu      sync.Mutex
	objects map[*Object]struct{} // those with tasks
	moving  int                  // tasks that are not just waiting
	quiet   chan struct{}        // closed when there are none; nil if nobody waits for that
}

// Config is what a set works with.
type Config struct {
	Specs []*Spec
	// Clock is made with (*Task).Ring.
	Clock *alarm.Clock[*Task]
	// Write sends a patch of an object and tries again for as long as that makes
	// sense. That the object is gone may be [apply.ErrGone] or no error at all.
	Write func(ctx context.Context, body *object.Body, p *patch.Patch, fresh bool) (*object.Body, error)
	// Wake makes an object get a turn.
	Wake func(key string)
	// Observe is told of calls; nil for nobody.
	Observe execute.Observer
	// Entrance is what calls pass. May be nil.
	Entrance *execute.Entrance
	// Room waits until there is memory for a call of a timer on the object, or until
	// the context or the channel ends. It returns the function to call afterwards.
	// nil means that there always is.
	Room func(ctx context.Context, stopping <-chan struct{}, body *object.Body) (leave func())
	// Outages limits log lines about failures of the API server. May be nil.
	Outages *kube.Outages

	DefaultBackoff time.Duration   // after unclassified errors
	ErrorDelays    []time.Duration // pauses after failed writes; the last repeats
	Jitter         jitter.Source   // shortens ErrorDelays; nil means exact delays
	Polling        time.Duration   // between log lines about what does not stop; 0 for 60 s
	ExitGrace      time.Duration   // for calls of timers to return when the operator exits
}

// Sighting is one look at an object.
type Sighting struct {
	// Request is what filters are asked with. Its body is the newest state.
	Request *registry.Request
	// Changed tells that this is an event of the stream, and that the essence of
	// the object is another one than last handled or never was handled: idling
	// starts anew.
	Changed bool
	// Unguarded tells that the object has no finalizer yet: what its deletion must
	// wait for is spawned at the next sight only.
	Unguarded bool
	// Again makes the requests of later calls. It is kept for as long as there
	// are any.
	Again func(*object.Body) *registry.Request
}

// NewSet makes a set of which nothing runs yet.
func NewSet(c Config) *Set {
	s := &Set{Config: c, objects: map[*Object]struct{}{}}
	life, die := context.WithCancel(context.Background())
	s.life, s.die = func() context.Context { return life }, die
	return s
}

// Sight spawns and stops tasks as the object demands. It takes what is kept of
// the object, nil at first, and returns it anew, nil if nothing is to be kept.
//
// due is the time until the next stage of stopping calls that the deletion of the
// object must wait for; it is unset if there are none. The object is also woken
// whenever one of them ends or is abandoned.
func (s *Set) Sight(o *Object, seen Sighting) (kept *Object, due registry.Opt[time.Duration]) {
	r := seen.Request
	var matching []*Spec
	if !r.Body.Deleting {
		matching = s.matching(r)
	}
	if o == nil {
		if len(matching) == 0 {
			return nil, due
		}
		o = &Object{set: s, key: r.Body.Key(), again: seen.Again, touched: time.Now()}
	}
	// Users' code is called without a lock, so spawning takes two steps; nobody
	// else spawns anything for this object meanwhile.
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

func (s *Set) matching(r *registry.Request) (matching []*Spec) {
	for _, spec := range s.Specs {
		if spec.matches(r) {
			matching = append(matching, spec)
		}
	}
	return matching
}

// Blocking tells whether the deletion of the object, if it comes to that, must
// wait for any of the tasks. What is over for this process does not count.
func (s *Set) Blocking(o *Object, r *registry.Request) bool {
	return slices.ContainsFunc(s.Specs, func(spec *Spec) bool {
		return spec.Mandatory && !o.isOver(spec) && spec.matches(r)
	})
}

// Patience is the time that tasks may take to stop as they are declared.
func (s *Set) Patience() (longest time.Duration) {
	for _, spec := range s.Specs {
		longest = max(longest, spec.StopGrace+spec.StopTimeout.Or(0))
	}
	return longest
}

// polling is the time between log lines about a call that does not stop.
func (s *Set) polling(spec *Spec) time.Duration {
	for _, d := range []time.Duration{spec.Polling, s.Polling} {
		if d > 0 {
			return d
		}
	}
	return time.Minute
}

// pause is the delay after a write has failed, with jitter.
func (s *Set) pause(failures int) time.Duration {
	pause := time.Second
	if n := len(s.ErrorDelays); n > 0 {
		pause = s.ErrorDelays[min(failures, n-1)]
	}
	return s.Jitter.Shorten(pause, jitter.Slight)
}
