package progress

import (
	"time"

	"gopf.dev/gopf/storage"
)

// Delays has the ends of handler delays by the monotonic clock of this process.
// Records have wall-clock times, and that clock may be adjusted, or may be the clock
// of another machine.
type Delays map[string]wait

type wait struct {
	recorded time.Time // the end of the delay as it is recorded
	until    time.Time // the end by the monotonic clock
}

// Remember restores the delays that [State.Delays] returned in an earlier turn of the
// same object.
func (s *State) Remember(d Delays) {
	for id, w := range d {
		s.delays[id] = w
	}
}

// Delays returns the ends of all recorded delays, for the next turn of the object. nil
// means that there are none.
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

// until returns the end of the recorded delay of a handler. Zero means no delay.
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

// left returns the remaining delay of a record that this process reads for the first
// time: until the recorded end, but never longer than the original delay.
func left(r storage.Record, now time.Time) time.Duration {
	d := max(0, r.Delayed.Sub(now))
	if r.Delay > 0 {
		d = min(d, r.Delay)
	}
	return d
}

// TimeoutStart returns the time from which a handler's timeout counts: its start, or now if
// the start is in the future by the clock of this process.
func TimeoutStart(started, now time.Time) time.Time {
	if started.After(now) {
		return now
	}
	return started
}
