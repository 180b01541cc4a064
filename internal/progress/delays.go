package progress

import (
	"time"

	"gopf.dev/gopf/storage"
)

// Delays remember when the delays of handlers end by the monotonic clock of this
// process. Recorded moments are those of a wall clock, which may be set back or
// forward, and may be the clock of another machine.
type Delays map[string]wait

type wait struct {
	recorded time.Time // the end of the delay as it is recorded
	until    time.Time // the end by the monotonic clock
}

// Remember makes the state use what an earlier turn of the same object has
// returned from [State.Delays].
func (s *State) Remember(d Delays) {
	for id, w := range d {
		s.delays[id] = w
	}
}

// Delays returns the ends of all delays that are recorded now, for the next turn
// of the object; nil if there are none.
func (s *State) Delays(now time.Time) Delays {
	var delays Delays
	for id, e := range s.entries {
		if e.now.Finished() || e.now.Delayed.IsZero() {
			continue
		}
		if delays == nil {
			delays = Delays{}
		}
		s.until(id, now)
		delays[id] = s.delays[id]
	}
	return delays
}

// until returns when the recorded delay of a handler ends; zero if there is none.
func (s *State) until(id string, now time.Time) time.Time {
	r := s.entries[id].now
	if r.Delayed.IsZero() {
		return time.Time{}
	}
	w, known := s.delays[id]
	if recorded := r.Delayed.Truncate(time.Microsecond); !known || !w.recorded.Truncate(time.Microsecond).Equal(recorded) {
		w = wait{r.Delayed, now.Add(left(r, now))}
		s.delays[id] = w
	}
	return w.until
}

// left returns how long a process that reads a record now for the first time
// waits for the end of its delay: until the recorded moment, but no longer than
// the delay was when it was recorded.
func left(r storage.Record, now time.Time) time.Duration {
	d := max(0, r.Delayed.Sub(now))
	if r.Delay > 0 {
		d = min(d, r.Delay)
	}
	return d
}

// Begun returns the moment from which a handler's timeout counts: when it started,
// or now if that is in the future by the clock of this process.
func Begun(started, now time.Time) time.Time {
	if started.After(now) {
		return now
	}
	return started
}
