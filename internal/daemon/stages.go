package daemon

import (
	"errors"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/registry"
)

// instant is how long a call that is asked to stop may take before anything is
// said about it: most return at once.
const instant = 10 * time.Millisecond

// stop is the request to a call to end, and how far it has come.
type stop struct {
	why       error
	since     time.Time
	grace     time.Duration
	timeout   registry.Opt[time.Duration]
	polling   time.Duration
	told      bool // of the grace
	cancelled bool
	abandoned bool
	polls     int
}

// stage is what is done about a call that does not end.
type stage int

const (
	nothing    stage = iota
	telling          // say that it has its grace
	cancelling       // cancel its context
	polling          // say that it is still there
	abandoning       // go on without it
)

// next tells what is to be done next, and when.
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

// due is when the object should be looked at again if nothing happens before:
// at the next stage, mere words aside.
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

// forced tells whether the cancellation is more than the first thing that the
// call hears of the stop.
func (s *stop) forced() bool { return s.grace > 0 || s.timeout.Set }

// quiet tells that the call ended before anything was said about the stop of
// the whole operator.
func (s *stop) quiet() bool {
	linear := errors.Is(s.why, ErrPaused) || errors.Is(s.why, execute.ErrStopping)
	return linear && !s.told && s.polls == 0 && !s.abandoned && !(s.cancelled && s.forced())
}
