package peering

import (
	"fmt"
	"strings"
	"time"
)

// Decision is the conclusion from the status of a peering object.
type Decision struct {
	// Higher and Same are the other live operators with a higher and with the same
	// priority. This operator pauses while there are any.
	Higher, Same []Record

	// Dead are the identities of other operators whose records must be removed. Our own
	// is never included: a late renewal is better than a removal, after which the
	// others would not know about us until the next renewal.
	Dead []string

	// Absent reports that our own record is missing or expired, so the others do not
	// know that we are alive.
	Absent bool

	// Again is the time of the next expiry in Higher and Same, unless the record is
	// renewed. Zero if there are none.
	Again time.Time

	// Unreadable are the invalid records by identity. They are ignored.
	Unreadable map[string]error
}

// Pause reports whether this operator must pause.
func (d Decision) Pause() bool { return len(d.Higher)+len(d.Same) > 0 }

// Decide evaluates the status of a peering object. It uses the given priority, not the
// one in our own record.
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

// list formats records for messages.
func list(records []Record) string {
	texts := make([]string, len(records))
	for i, r := range records {
		texts[i] = r.String()
	}
	return fmt.Sprintf("[%s]", strings.Join(texts, ", "))
}

// Interval returns the time between two renewals of a record: the lifetime minus ahead,
// in whole seconds, and at least one second.
func Interval(lifetime, ahead time.Duration) time.Duration {
	lifetime = lifetime.Truncate(time.Second)
	return max(time.Second, min(lifetime, max(time.Second, lifetime-ahead)))
}

// Renewals are early by a random number of whole seconds between these, which spreads
// the writes of operators that were started together.
const (
	leastAhead = 5 * time.Second
	mostAhead  = 10 * time.Second
)
