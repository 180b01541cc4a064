package daemon

import "time"

// phase is the progress of a task.
type phase uint8

const (
	fresh  phase = iota // not called yet; the first call is due at from
	failed              // must be called again after a pause
	done                // was called, and succeeded or failed permanently
	chosen              // same, but the call chose the delay until the next one
)

// timing contains what determines the next call of a task, besides its spec and the
// last change of the object.
type timing struct {
	phase   phase
	hurried bool          // an immediate call was requested
	early   bool          // the last call was before the end of a pause after a failure, and attempts are limited: it does not count as one
	pause   time.Duration // after a failure, or chosen
	started time.Time     // start of the last call
	from    time.Time     // end of the last call and its write; if fresh, the time of the first call
}

// next returns the time of the next call of a task, now at the earliest. It returns
// false if there is none unless something changes. touched is the time of the last
// change of the object.
func (s *Spec) next(t timing, touched, now time.Time) (at time.Time, ok bool) {
	switch {
	case t.hurried:
		return now, true
	case t.phase == fresh:
		at = t.from
	case t.phase != done:
		at = t.from.Add(t.pause)
	case s.over(t):
		return time.Time{}, false
	case s.Interval == 0: // once after each series of changes
		if !touched.After(t.started) {
			return time.Time{}, false
		}
		at = t.from
	case s.Sharp:
		took := t.from.Sub(t.started)
		at = t.from.Add(s.Interval - took%s.Interval)
	default:
		at = t.from.Add(s.Interval)
	}
	if s.Timer && s.Idle > 0 {
		at = latest(at, touched.Add(s.Idle))
	}
	return latest(at, now), true
}

// over reports whether the task will never be called again.
func (s *Spec) over(t timing) bool {
	return t.phase == done && (!s.Timer || s.Interval == 0 && s.Idle == 0)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
