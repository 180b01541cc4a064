package daemon

import "time"

// phase is how far a task has come.
type phase uint8

const (
	fresh  phase = iota // it was not called yet, and is to be from some moment on
	failed              // it is to be called again after a pause
	done                // it was called, and succeeded or gave up
	chosen              // the same, but the call itself chose the pause until the next one
)

// timing is what the moment of the next call of a task depends on, besides what
// is declared and when the object has changed.
type timing struct {
	phase   phase
	hurried bool          // somebody asked for a call now
	pause   time.Duration // after a failure, or chosen
	started time.Time     // the start of the last call
	from    time.Time     // the end of the last call, what it had written included; if fresh, when the first may be
}

// next tells when a task is to be called next, but not before now. It is not ok
// if it is not to be called at all, unless something changes. touched is when
// the object has last changed.
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
	case s.Interval == 0: // once for each series of changes
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

// over tells whether a task is never to be called again.
func (s *Spec) over(t timing) bool {
	return t.phase == done && (!s.Timer || s.Interval == 0 && s.Idle == 0)
}

func latest(a, b time.Time) time.Time {
	if a.After(b) {
		return a
	}
	return b
}
