package daemon

import (
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
)

// instant is the time for a call to stop before anything is logged about it. Most calls
// return at once.
const instant = 10 * time.Millisecond

// stop is a request to stop a call, with its progress.
type stop struct {
	why       error
	since     time.Time
	grace     time.Duration
	timeout   handler.Opt[time.Duration]
	polling   time.Duration
	told      bool // the grace was logged
	cancelled bool
	abandoned bool
	polls     int
}

// stage is a step in stopping a call.
type stage int

const (
	nothing    stage = iota
	telling          // log that it has a grace period
	cancelling       // cancel its context
	polling          // log that it still runs
	abandoning       // continue without it
)

// next returns the next stage and its time.
func (s *stop) next() (what stage, at time.Time) {
	end := s.since.Add(s.grace)
	switch {
	case s.abandoned:
		return nothing, time.Time{}
	case !s.cancelled && !s.told && s.grace > instant:
		return telling, s.since.Add(instant)
	case !s.cancelled:
		return cancelling, end
	case s.timeout.Set:
		return abandoning, end.Add(max(s.timeout.Is, instant))
	case s.polls == 0:
		return polling, end.Add(instant)
	}
	return polling, end.Add(time.Duration(s.polls) * s.polling)
}

// due returns when the object should have a turn again if nothing happens before: at
// the next stage that does more than log.
func (s *stop) due() time.Time {
	end := s.since.Add(s.grace)
	switch {
	case !s.cancelled:
		return end
	case s.timeout.Set:
		return end.Add(s.timeout.Is)
	}
	return end.Add(time.Duration(max(1, s.polls)) * s.polling)
}

// forced reports whether the cancellation is an escalation, and not the normal first
// signal to the call.
func (s *stop) forced() bool { return s.grace > 0 || s.timeout.Set }

// quiet reports whether the call ended before anything was logged about the stop of the
// whole operator.
func (s *stop) quiet() bool {
	linear := errors.Is(s.why, ErrPaused) || errors.Is(s.why, execute.ErrStopping)
	return linear && !s.told && s.polls == 0 && !s.abandoned && !(s.cancelled && s.forced())
}
