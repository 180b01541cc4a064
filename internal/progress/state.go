// Package progress keeps the state of each handler of one object during a handling,
// and decides which handlers are due and when. It is pure: the current time is always
// an argument.
package progress

import (
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/storage"
)

// State has the records of all handlers of an object, as they are stored and with the
// changes since. It is not safe for concurrent use. Methods that take ids of handlers
// panic for ids that were neither stored nor selected, except where noted.
type State struct {
	entries map[string]*entry
	delays  Delays
}

type entry struct {
	stored    storage.Record
	isStored  bool
	now       storage.Record
	postponed time.Time // the handler is not due before; this is not recorded
	early     bool      // the next call is before the end of a delay
	renamed   bool      // the record is stored under a former id
}

// New returns a state with the stored records.
func New(stored map[string]storage.Record) *State {
	s := &State{entries: map[string]*entry{}, delays: Delays{}}
	s.Add(stored)
	return s
}

// Add adds more stored records. Records of known handlers are ignored.
func (s *State) Add(stored map[string]storage.Record) {
	for id, record := range stored {
		if s.entries[id] == nil {
			s.entries[id] = &entry{stored: record, isStored: true, now: record}
		}
	}
}

// Rename copies the record of a former handler id to the current one, unless that has
// its own. Either may be unknown.
func (s *State) Rename(former, id string) {
	old := s.entries[former]
	if old == nil || s.entries[id] != nil {
		return
	}
	s.entries[id] = &entry{now: old.now, renamed: true}
}

// Select adds the handlers to the handling of the reason. Handlers without a record, or
// with one for another reason, start from the beginning: progress for one reason does
// not count for another.
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

// Record returns the current record of a handler.
func (s *State) Record(id string) storage.Record { return s.entries[id].now }

// Has reports whether the handler was stored or selected.
func (s *State) Has(id string) bool { return s.entries[id] != nil }

// Find returns the current record of a handler. It is empty if the handler is unknown.
func (s *State) Find(id string) storage.Record {
	if e := s.entries[id]; e != nil {
		return e.now
	}
	return storage.Record{}
}

// Hasten makes unfinished handlers due now by dropping their delays.
func (s *State) Hasten(ids []string, now time.Time) {
	for _, id := range ids {
		e := s.entries[id]
		if !e.now.Finished() {
			e.early = e.early || s.until(id, now).After(now) || e.postponed.After(now)
			e.now.Delayed, e.now.Delay, e.postponed = time.Time{}, 0, time.Time{}
		}
	}
}

// TakeEarly reports whether the next call of a handler is before the end of a delay, because of
// [State.Hasten]. Later calls are not.
func (s *State) TakeEarly(id string) (early bool) {
	e := s.entries[id]
	early, e.early = e.early, false
	return early
}

// Due returns the handlers that may be called now, in the given order.
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

// Attempt is the outcome of one attempt of a handler.
type Attempt struct {
	Final   bool                       // the handler is finished
	Failed  bool                       // the attempt ended with an error
	Message string                     // the text of the error
	Delay   handler.Opt[time.Duration] // until the next attempt; unset means at once
	Subs    []string                   // the ids of sub-handlers on all levels
	Waited  time.Duration              // the wait before the call, which does not count for the timeout
	Early   bool                       // the call was before the end of a delay: it does not count as a retry
}

// Attempted records an attempt.
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
	r.Started = TimeoutStart(r.Started, now).Add(a.Waited)
	if !a.Early {
		r.Retries++
	}
	r.Message = nil
	if a.Failed {
		r.Message = &a.Message
	}
	s.Refer(id, a.Subs)
}

// Refer adds sub-handlers, on all levels, to the record of a handler. It must be called
// even after an attempt that does not count: without the reference, the records of
// sub-handlers could never be purged.
func (s *State) Refer(id string, subs []string) {
	r := &s.entries[id].now
	if len(r.Subrefs)+len(subs) == 0 {
		return // as for most handlers
	}
	r.Subrefs = slices.Compact(slices.Sorted(slices.Values(slices.Concat(r.Subrefs, subs))))
}

// PostponeAll postpones the handlers. Unknown ids are ignored.
func (s *State) PostponeAll(until map[string]time.Time) {
	for id, moment := range until {
		if s.entries[id] != nil {
			s.Postpone(id, moment)
		}
	}
}

// Postponed returns the handlers that are postponed beyond now. nil means none.
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

// Postpone delays a handler without counting an attempt and without recording it.
func (s *State) Postpone(id string, until time.Time) { s.entries[id].postponed = until }

// Done reports whether all the handlers are finished.
func (s *State) Done(ids []string) bool {
	for _, id := range ids {
		if !s.entries[id].now.Finished() {
			return false
		}
	}
	return true
}

// Delay returns the time until the next of the handlers is due; 0 means now. It is
// unset if all are finished.
func (s *State) Delay(ids []string, now time.Time) handler.Opt[time.Duration] {
	var least handler.Opt[time.Duration]
	for _, id := range ids {
		e := s.entries[id]
		if e.now.Finished() {
			continue
		}
		wait := max(0, s.until(id, now).Sub(now), e.postponed.Sub(now))
		if !least.Set || wait < least.Is {
			least = handler.Some(wait)
		}
	}
	return least
}

// Subs returns the sub-handlers of the handlers, on all levels.
func (s *State) Subs(ids []string) []string {
	var subs []string
	for _, id := range ids {
		subs = append(subs, s.entries[id].now.Subrefs...)
	}
	return subs
}

// Changed returns the records that differ from the stored ones.
func (s *State) Changed() map[string]storage.Record {
	changed := map[string]storage.Record{}
	for id, e := range s.entries {
		if !e.isStored || !e.now.Equal(e.stored) {
			changed[id] = e.now
		}
	}
	return changed
}

// IDs returns the ids of all handlers with a record, and of their sub-handlers, sorted.
func (s *State) IDs() []string {
	ids := make([]string, 0, len(s.entries))
	for id, e := range s.entries {
		ids = append(append(append(ids, id), e.now.Subrefs...), e.stored.Subrefs...)
	}
	slices.Sort(ids)
	return slices.Compact(ids)
}

// Counts has the numbers of succeeded, failed and unfinished handlers.
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

// Counts counts the handlers that take part in the handling of the reason.
func (s *State) Counts(reason cause.Reason) Counts {
	var counts Counts
	for _, e := range s.entries {
		if e.now.Purpose == "" || e.now.Purpose == string(reason) {
			counts.add(e.now)
		}
	}
	return counts
}

// Superseded returns the counts of unfinished handlings of other reasons, and the ids
// of their records. Call it before [State.Select], which resets such records.
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

// Recorded returns the ids of the handlers with a record for the reason, sorted.
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

// Started returns the earliest start of a handler with a record for the reason. Zero
// means that there is none.
func (s *State) Started(reason cause.Reason) time.Time {
	var first time.Time
	for _, e := range s.entries {
		if at := e.now.Started; e.now.Purpose == string(reason) && (first.IsZero() || at.Before(first)) {
			first = at
		}
	}
	return first
}

// Restore restores the record that a handler had before its last attempt. The caller
// can then record another outcome of the attempt.
func (s *State) Restore(id string, before storage.Record) {
	s.entries[id].now, s.entries[id].postponed = before, time.Time{}
}

// Records returns the current records of all handlers.
func (s *State) Records() map[string]storage.Record {
	records := make(map[string]storage.Record, len(s.entries))
	for id, e := range s.entries {
		records[id] = e.now
	}
	return records
}

// Clone returns a copy that can be modified without modifying s.
func (s *State) Clone() *State {
	c := &State{entries: make(map[string]*entry, len(s.entries)), delays: make(Delays, len(s.delays))}
	maps.Copy(c.delays, s.delays)
	for id, e := range s.entries {
		copied := *e
		c.entries[id] = &copied
	}
	return c
}
