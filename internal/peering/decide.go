package peering

import (
	"fmt"
	"strings"
	"time"
)

// Decision is what follows from the status of a peering object.
type Decision struct {
	// Higher and Same are the living others of a higher and of the same
	// priority. We pause while there are any.
	Higher, Same []Record

	// Dead are the identities of others whose records are to be removed. Our
	// own is never among them: a late renewal is better than a removal, after
	// which the others would not know of us until the next one.
	Dead []string

	// Absent says that our own record is not there, or dead: nobody knows that
	// we live.
	Absent bool

	// Again is when the first of Higher and Same is dead, unless it renews its
	// record before; zero if there are none.
	Again time.Time

	// Unreadable are the identities whose records are none, and why. They are
	// ignored.
	Unreadable map[string]error
}

// Pause tells whether we must pause.
func (d Decision) Pause() bool { return len(d.Higher)+len(d.Same) > 0 }

// Decide finds out what to do in view of a status. It is the priority given
// that counts, not the one in our own record.
func Decide(now time.Time, identity string, priority int, status map[string]any) Decision {
	records, unreadable := Parse(status, now)
	d := Decision{Absent: true, Unreadable: unreadable}
	for _, r := range records {
		switch dead := r.Dead(now); {
		case r.Identity == identity:
			d.Absent = dead
		case dead:
			d.Dead = append(d.Dead, r.Identity)
		case r.Priority > priority:
			d.Higher = append(d.Higher, r)
		case r.Priority == priority:
			d.Same = append(d.Same, r)
		}
	}
	for _, rs := range [][]Record{d.Higher, d.Same} {
		for _, r := range rs {
			if at := r.Deadline(); d.Again.IsZero() || at.Before(d.Again) {
				d.Again = at
			}
		}
	}
	return d
}

// list shows records in messages.
func list(records []Record) string {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = r.String()
	}
	return fmt.Sprintf("[%s]", strings.Join(texts, ", "))
}

// Interval is the time from one renewal of a record to the next: sooner than
// the lifetime ends by the ahead, in whole seconds, but never sooner than after
// a second.
func Interval(lifetime, ahead time.Duration) time.Duration {
	lifetime = lifetime.Truncate(time.Second)
	return max(time.Second, min(lifetime, max(time.Second, lifetime-ahead)))
}

// The renewals are ahead by a random time between these, in whole seconds, so
// that operators that were started together do not write together.
const (
	leastAhead = 5 * time.Second
	mostAhead  = 10 * time.Second
)
