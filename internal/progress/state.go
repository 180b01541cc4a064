// Package progress keeps the state of each handler of one object while a
// change is being handled, and decides what is due next. It is pure: the time
// is always an argument.
package progress

import (
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/storage"
)

// State is the records of all handlers of an object: those stored, and what
// has become of them since.
type State struct {
	entries map[string]*entry
	delays  Delays
}

type entry struct {
	stored    storage.Record
	isStored  bool
	now       storage.Record
	postponed time.Time // not due before, though nothing of it is recorded
	renamed   bool      // it is stored under a former id
}

// New makes a state of stored records.
func New(stored map[string]storage.Record) *State {
	s := &State{entries: map[string]*entry{}, delays: Delays{}}
	s.Add(stored)
	return s
}

// Add brings in further stored records. What is known already stays.
func (s *State) Add(stored map[string]storage.Record) {
	for id, record := range stored {
		if s.entries[id] == nil {
			s.entries[id] = &entry{stored: record, isStored: true, now: record}
		}
	}
}

// Rename makes the record of a former id that of the present one, if that has
// none of its own.
func (s *State) Rename(former, id string) {
	old := s.entries[former]
	if old == nil || s.entries[id] != nil {
		return
	}
	s.entries[id] = &entry{now: old.now, renamed: true}
}

// Select makes the handlers take part in the handling of the reason. Those
// without a record, or with one for another reason, start anew: what was done
// for one reason says nothing about the next.
func (s *State) Select(ids []string, reason cause.Reason, now time.Time) {
	for _, id := range ids {
		e := s.entries[id]
		if e == nil {
			e = &entry{}
			s.entries[id] = e
		} else if e.now.Purpose == "" || e.now.Purpose == string(reason) {
			if e.now.Started.IsZero() {
				e.now.Started = now
			}
			continue
		}
		e.now = storage.Record{Started: now, Purpose: string(reason)}
	}
}

// Record is the present record of a handler.
func (s *State) Record(id string) storage.Record { return s.entries[id].now }

// Hasten makes the handlers due now, whatever delay was recorded for them.
func (s *State) Hasten(ids []string) {
	for _, id := range ids {
		e := s.entries[id]
		if !e.now.Finished() {
			e.now.Delayed, e.now.Delay, e.postponed = time.Time{}, 0, time.Time{}
		}
	}
}

// Due returns those of the handlers that may be called now, in their order.
func (s *State) Due(ids []string, now time.Time) []string {
	var due []string
	for _, id := range ids {
		e := s.entries[id]
		if !e.now.Finished() && !s.until(id, now).After(now) && !e.postponed.After(now) {
			due = append(due, id)
		}
	}
	return due
}

// Attempt is how one attempt of a handler ended.
type Attempt struct {
	Final   bool
	Failed  bool                        // ended with an error
	Message string                      // of the error
	Delay   registry.Opt[time.Duration] // until the next one
	Subs    []string                    // the sub-handlers it has on all levels
	Waited  time.Duration               // before it began, which must not count for the timeout
}

// Attempted notes an attempt that counts.
func (s *State) Attempted(id string, a Attempt, now time.Time) {
	r := &s.entries[id].now
	if a.Final && r.Stopped.IsZero() {
		r.Stopped = now
	}
	r.Delayed, r.Delay = time.Time{}, 0
	if a.Delay.Set {
		r.Delayed, r.Delay = now.Add(a.Delay.Is), a.Delay.Is
		s.delays[id] = wait{r.Delayed, r.Delayed}
	}
	r.Success, r.Failure = a.Final && !a.Failed, a.Final && a.Failed
	r.Started = Begun(r.Started, now).Add(a.Waited)
	r.Retries++
	r.Message = nil
	if a.Failed {
		r.Message = &a.Message
	}
	s.Refer(id, a.Subs)
}

// Refer adds sub-handlers, on all levels, to the record of a handler. The record
// is the only place that names their records, so this also holds for an attempt
// that does not count: without it, their records could never be purged.
func (s *State) Refer(id string, subs []string) {
	r := &s.entries[id].now
	r.Subrefs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Subrefs, subs))))
}

// PostponeAll postpones those of the handlers that are known.
func (s *State) PostponeAll(until map[string]time.Time) {
	for id, moment := range until {
		if s.entries[id] != nil {
			s.Postpone(id, moment)
		}
	}
}

// Postponed are the handlers that are postponed beyond the moment; nil if none
// is.
func (s *State) Postponed(now time.Time) map[string]time.Time {
	var postponed map[string]time.Time
	for id, e := range s.entries {
		if e.postponed.After(now) {
			if postponed == nil {
				postponed = map[string]time.Time{}
			}
			postponed[id] = e.postponed
		}
	}
	return postponed
}

// Postpone makes a handler due again at the moment without an attempt counted.
func (s *State) Postpone(id string, until time.Time) { s.entries[id].postponed = until }

// Done tells whether all the handlers are finished.
func (s *State) Done(ids []string) bool {
	for _, id := range ids {
		if !s.entries[id].now.Finished() {
			return false
		}
	}
	return true
}

// Delay is the time until the next of the handlers is due; 0 if one is now. It
// is unset if all are finished.
func (s *State) Delay(ids []string, now time.Time) registry.Opt[time.Duration] {
	var least registry.Opt[time.Duration]
	for _, id := range ids {
		e := s.entries[id]
		if e.now.Finished() {
			continue
		}
		wait := max(0, s.until(id, now).Sub(now), e.postponed.Sub(now))
		if !least.Set || wait < least.Is {
			least = registry.Some(wait)
		}
	}
	return least
}

// Subs are the sub-handlers of the handlers, and theirs.
func (s *State) Subs(ids []string) []string {
	var subs []string
	for _, id := range ids {
		subs = append(subs, s.entries[id].now.Subrefs...)
	}
	return subs
}

// Changed are the records that differ from what is stored.
func (s *State) Changed() map[string]storage.Record {
	changed := map[string]storage.Record{}
	for id, e := range s.entries {
		if !e.isStored || !e.now.Equal(e.stored) {
			changed[id] = e.now
		}
	}
	return changed
}

// IDs are all ids that anything is known of, sub-handlers included, sorted.
func (s *State) IDs() []string {
	ids := slices.Collect(maps.Keys(s.entries))
	for _, e := range s.entries {
		ids = append(append(ids, e.now.Subrefs...), e.stored.Subrefs...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Counts tell how far a handling has come.
type Counts struct{ Succeeded, Failed, Left int }

func (c *Counts) add(r storage.Record) {
	switch {
	case r.Success:
		c.Succeeded++
	case r.Failure:
		c.Failed++
	default:
		c.Left++
	}
}

// Counts tell how far the handling of the reason has come.
func (s *State) Counts(reason cause.Reason) Counts {
	var counts Counts
	for _, e := range s.entries {
		if e.now.Purpose == "" || e.now.Purpose == string(reason) {
			counts.add(e.now)
		}
	}
	return counts
}

// Superseded tells how far the handling of other reasons had come when this
// one took over, and which records are left over from it. Ask before Select.
func (s *State) Superseded(reason cause.Reason) (counts map[cause.Reason]Counts, ids []string) {
	counts = map[cause.Reason]Counts{}
	for id, e := range s.entries {
		other := cause.Reason(e.now.Purpose)
		if other == "" || other == reason {
			continue
		}
		c := counts[other]
		c.add(e.now)
		counts[other] = c
		ids = append(append(ids, id), e.now.Subrefs...)
	}
	slices.Sort(ids)
	return counts, slices.Compact(ids)
}

// Recorded are the handlers that take part in the handling of the reason, by
// what is stored of them; sorted.
func (s *State) Recorded(reason cause.Reason) []string {
	var ids []string
	for id, e := range s.entries {
		if e.now.Purpose == string(reason) {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// Started returns when the first handler began that takes part in the handling of
// the reason; zero if none does.
func (s *State) Started(reason cause.Reason) time.Time {
	var first time.Time
	for _, e := range s.entries {
		if at := e.now.Started; e.now.Purpose == string(reason) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Restore puts back the record that a handler had before its last attempt, which
// turned out to be another one than was noted.
func (s *State) Restore(id string, before storage.Record) {
	s.entries[id].now, s.entries[id].postponed = before, time.Time{}
}

// Records returns the present records of all handlers.
func (s *State) Records() map[string]storage.Record {
	records := make(map[string]storage.Record, len(s.entries))
	for id, e := range s.entries {
		records[id] = e.now
	}
	return records
}

// Clone returns a copy that can be changed without changing s.
func (s *State) Clone() *State {
	c := &State{entries: make(map[string]*entry, len(s.entries)), delays: make(Delays, len(s.delays))}
	maps.Copy(c.delays, s.delays)
	for id, e := range s.entries {
		copied := *e
		c.entries[id] = &copied
	}
	return c
}
