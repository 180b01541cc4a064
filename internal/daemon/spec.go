package daemon

import (
	"context"
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/registry"
)

// Why a task is stopped: the cause of the cancellation of its context, see
// [context.Cause]. When the operator exits, it is [execute.ErrStopping].
var (
	ErrDeleted   = errors.New("the object is being deleted")
	ErrUnmatched = errors.New("the object does not match the filters anymore")
	ErrPaused    = errors.New("the operator is pausing")
)

// Spec is a declared daemon or timer.
type Spec struct {
	// Handler has the id, the filters, the limits of attempts, and whether
	// deletions wait for it (Mandatory). Its own Call is not used.
	*registry.Handler

	// Call is the user's function.
	Call func(context.Context, *Call) error

	// Timer tells timers from daemons: they are called again and again.
	Timer bool

	// InitialDelay is how long to wait after the object was seen before the
	// first call; nil for not at all. It may look at the object.
	InitialDelay func(*registry.Request) time.Duration

	// Interval is the time between two calls of a timer; 0 for none: then it is
	// called once, or with Idle once after each series of changes. It counts from
	// the end of a call, or if Sharp, from its start.
	Interval time.Duration
	Sharp    bool

	// Idle is for how long the object must not have changed when a timer is
	// called; 0 for no matter.
	Idle time.Duration

	// StopGrace is how long a call that is asked to stop goes on with its context
	// as it was.
	StopGrace time.Duration
	// StopTimeout is how long a call may go on after its context was cancelled,
	// before it is abandoned; unset for as long as it likes.
	StopTimeout registry.Opt[time.Duration]
	// Polling is the time between log lines about a call that does not stop; 0
	// for the default.
	Polling time.Duration
}

// title is what logs call it.
func (s *Spec) title() string {
	if s.Timer {
		return "Timer"
	}
	return "Daemon"
}

func (s *Spec) name() string { return s.title() + " '" + s.ID + "'" }

// matches tells whether the object as it is now is one for it.
func (s *Spec) matches(r *registry.Request) bool {
	if c := s.Change; c != nil {
		v, present := r.Body.Lookup(c.Path...)
		if !c.Touches(filter.Value{Is: v, Present: present}) {
			return false
		}
	}
	return s.MatchesObject(r)
}

// isStop tells whether an error is why tasks are stopped.
func isStop(err error) bool {
	for _, why := range []error{ErrDeleted, ErrUnmatched, ErrPaused, execute.ErrStopping} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}
