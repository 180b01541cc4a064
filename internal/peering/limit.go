package peering

import (
	"maps"
	"time"

	"gopf.dev/gopf/diff"
)

// LongestLifetime limits how long a record of another operator counts without a
// renewal, whatever its lifetime. Otherwise a record with a lifetime of years, or with
// a last-seen time in the future, would pause this operator forever.
const LongestLifetime = 7 * 24 * time.Hour

// sightings are the records of other operators, with the time of their last change.
type sightings map[string]sighting

type sighting struct {
	value any
	since time.Time
	told  bool // it was logged that it no longer counts
}

// limit returns the status without the records of others that were not renewed for too
// long, and the identities of those that are dropped for the first time. Values that
// are not records stay.
func (s sightings) limit(status map[string]any, own string, now time.Time) (counting map[string]any, dropped []string) {
	maps.DeleteFunc(s, func(id string, _ sighting) bool { return status[id] == nil })
	for id, value := range status {
		if id == own {
			continue
		}
		seen, known := s[id]
		if !known || !diff.Equal(seen.value, value) {
			seen = sighting{value: value, since: now}
		}
		r, err := parse(id, value, now)
		since := seen.since
		if r.LastSeen.Before(since) {
			since = r.LastSeen
		}
		if err == nil && !r.Dead(now) && now.Sub(since) >= LongestLifetime {
			if counting == nil {
				counting = maps.Clone(status)
			}
			delete(counting, id)
			if !seen.told {
				dropped, seen.told = append(dropped, id), true
			}
		}
		s[id] = seen
	}
	if counting == nil {
		counting = status
	}
	return counting, dropped
}
