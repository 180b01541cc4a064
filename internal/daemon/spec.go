package daemon

import (
	"context"
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// Reasons for stopping a task. They are the cause of canceling its context, see
// [context.Cause]. When the operator exits, it is [execute.ErrStopping].
var (
	ErrDeleted   = errors.New("the object is being deleted")
	ErrUnmatched = errors.New("the object does not match the filters anymore")
	ErrPaused    = errors.New("the operator is pausing")
)

// Spec is a declared daemon or timer.
type Spec struct {
	// Handler has the id, the filters, the limits of attempts, and whether deletions
	// wait for it (Mandatory). Its own Call is not used.
	*handler.Handler

	// Call is the user's function.
	Call func(context.Context, *Call) error

	// Timer is true for timers, which are called repeatedly, and false for daemons.
	Timer bool

	// InitialDelay returns the delay of the first call after the object was seen. It
	// may depend on the object. nil means no delay.
	InitialDelay func(*handler.Request) time.Duration

	// Interval is the time between two calls of a timer. It counts from the end of a
	// call, or from its start if Sharp. 0 means one call, or with Idle one call after
	// each series of changes.
	Interval time.Duration
	Sharp    bool

	// Idle is the time without changes of the object before a timer is called. 0 means
	// no such condition.
	Idle time.Duration

	// StopGrace is the time between asking a call to stop and canceling its context. 0
	// means that the context is canceled at once.
	StopGrace time.Duration
	// StopTimeout is the time after canceling the context after which a call is
	// abandoned. Unset means never.
	StopTimeout handler.Opt[time.Duration]
	// Polling is the interval of log lines about a call that does not stop. 0 means the
	// default of the set.
	Polling time.Duration
}

// title returns the word for it in logs.
func (s *Spec) title() string {
	if s.Timer {
		return "Timer"
	}
	return "Daemon"
}

func (s *Spec) name() string { return s.title() + " '" + s.ID + "'" }

// matches reports whether the spec applies to the object as it is now.
func (s *Spec) matches(r *handler.Request) bool { return s.MatchesEvent(r) }

// isStop reports whether err is a reason for stopping tasks.
func isStop(err error) bool {
	for _, why := range []error{ErrDeleted, ErrUnmatched, ErrPaused, execute.ErrStopping} {
		if errors.Is(err, why) {
			return true
		}
	}
	return false
}
