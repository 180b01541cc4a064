package progress

import (
	"maps"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// HandlingID is the id under which the handling note is stored, beside the records
// of handlers. Kopf has no handler of that name and leaves it alone.
const HandlingID = "gopf.handling"

// Note is the handling note: what the operator stores about one handling beside the
// records of its handlers.
//
// Handlers of one handling may finish in different turns, and the object may change
// in between. The note tells which essence each finished handler saw. If the
// handling ends and some of them did not see the final essence, the note stays, and
// each handler of the update that follows is selected by the essence that it saw.
type Note struct {
	// Key identifies the handling. It is empty before the handling is first saved.
	Key string
	// Reason is the reason of the handling.
	Reason cause.Reason
	// Started is when the handling began; zero before it is first saved.
	Started time.Time
	// Base identifies the base that was saved when the previous handling ended and
	// the note stayed; see [BaseID]. It is empty if it did not.
	Base string
	// Todo are changes that handlers asked for and that are stored before they are
	// sent, in the order in which they are sent.
	Todo []Todo

	essences []map[string]any // each distinct one once
	saw      map[string]sighting
}

// sighting is what one handler saw when it finished.
type sighting struct {
	essence int // its index
	// stopped is when the handler finished, as its record says. It is zero if the
	// handler finished in the previous handling, whose records are gone.
	stopped time.Time
}

// Todo is a change that a handler asked for and that is still to be sent.
type Todo struct {
	Handler string
	Patch   map[string]any // a merge patch
}

// Saw notes that a handler finished with an essence before it, at the moment that
// its record has. The essence must not be changed afterwards.
func (n *Note) Saw(id string, essence map[string]any, stopped time.Time) {
	if n.saw == nil {
		n.saw = map[string]sighting{}
	}
	n.saw[id] = sighting{n.index(essence), stopped}
}

func (n *Note) index(essence map[string]any) int {
	for i, known := range n.essences {
		if diff.Equal(known, essence) {
			return i
		}
	}
	n.essences = append(n.essences, essence)
	return len(n.essences) - 1
}

// Earlier returns the essence that a handler saw when it finished in the previous
// handling; nil if the note does not tell. The handler then saw the base.
func (n *Note) Earlier(id string) map[string]any {
	if s, ok := n.saw[id]; ok && s.stopped.IsZero() {
		return n.essences[s.essence]
	}
	return nil
}

// Followed reports whether the note is of a previous handling and has handlers that
// saw something else than the base.
func (n *Note) Followed() bool {
	for _, s := range n.saw {
		if s.stopped.IsZero() {
			return true
		}
	}
	return false
}

// Renew replaces each essence in the note by what fn returns for it.
func (n *Note) Renew(fn func(essence map[string]any) map[string]any) {
	for i, e := range n.essences {
		if !essence.IsDigest(e) {
			n.essences[i] = fn(e)
		}
	}
}

// Empty reports whether the note says nothing about any handler.
func (n *Note) Empty() bool { return len(n.saw) == 0 && len(n.Todo) == 0 }

// Clone returns a copy that can be changed without changing n.
func (n *Note) Clone() *Note {
	c := *n
	c.essences, c.Todo = slices.Clone(n.essences), slices.Clone(n.Todo)
	c.saw = make(map[string]sighting, len(n.saw))
	for id, s := range n.saw {
		c.saw[id] = s
	}
	return &c
}

// Verify drops the sightings that belong to another handling, which another
// operator has finished or begun. Those of this handling must have a finished
// record with the same moment; those of the previous one are valid for the base
// that was saved with them. records are the stored ones, sub-handlers included.
func (n *Note) Verify(base string, records map[string]storage.Record) {
	for id, s := range n.saw {
		valid := n.Base != "" && n.Base == base
		if !s.stopped.IsZero() {
			r := records[id]
			valid = r.Finished() && r.Purpose == string(n.Reason) && sameMoment(r.Stopped, s.stopped)
		}
		if !valid {
			delete(n.saw, id)
		}
	}
}

// Continue makes n the note of a handling of the reason: if it is of another one,
// only what is known of the previous handling stays.
func (n *Note) Continue(reason cause.Reason) {
	if n.Reason == reason {
		return
	}
	n.Key, n.Reason, n.Started = "", reason, time.Time{}
	for id, s := range n.saw {
		if !s.stopped.IsZero() {
			delete(n.saw, id)
		}
	}
}

// Absorb makes a change of the essence that the operator itself wrote a part of
// what all handlers saw, so that it is no change for them. now is the essence
// before the change, and patched the essence after it.
func (n *Note) Absorb(now, patched map[string]any) {
	change := patch.Between(now, patched)
	if len(change) == 0 {
		return
	}
	for i, e := range n.essences {
		switch {
		case !essence.IsDigest(e):
			e = fieldpath.Clone(e).(map[string]any)
			patch.Apply(e, change)
			storage.Tidy(e)
			n.essences[i] = e
		case diff.Equal(essence.Undigest(e, now), now):
			if digest, err := essence.Digest(patched); err == nil {
				n.essences[i] = digest
			}
		}
	}
}

// End is the result of a handling: what becomes the base, and the note for the
// update that follows; nil if nothing follows.
type End struct {
	Base map[string]any
	Note *Note
}

// End ends the handling with the final essence. Every handler that saw it, or of
// which nothing is known, is up to date. If all are, the final essence becomes the
// base. Otherwise the base becomes what the earliest of the others saw.
//
// records has the records of all handlers, sub-handlers included. old is the base
// so far, nil if there is none: it is what handlers saw that have a record but did
// not finish. declared are the ids of the handlers for the reason: if they have
// neither finished nor a record, or if there was no base, the final essence counts
// as what they saw, as if it were the base.
func (n *Note) End(final, old map[string]any, records map[string]storage.Record, declared []string) End {
	late := n.earliestLate(final)
	if late == nil {
		return End{Base: final}
	}
	base := n.essences[late.essence]
	own := func(id string) map[string]any {
		s, finished := n.saw[id]
		switch {
		case finished:
			return n.essences[s.essence]
		case records[id].Finished():
			return nil // by another operator: nothing is known of it
		case old != nil && !records[id].Started.IsZero():
			return old
		}
		return final
	}
	// A handler without a sighting in the note counts as one that saw the base. A
	// late sub-handler needs a sighting although it saw the base, if its parent did
	// not: otherwise the parent would not be called, and so neither would it.
	hidden := func(id string) bool {
		for parent, r := range records {
			if slices.Contains(r.Subrefs, id) && !diff.Equal(own(parent), base) {
				return true
			}
		}
		return false
	}
	next := &Note{Reason: cause.Update}
	ids := slices.Concat(slices.Collect(maps.Keys(n.saw)), slices.Collect(maps.Keys(records)), declared)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if e := own(id); e != nil && (!diff.Equal(e, base) || hidden(id)) {
			next.Saw(id, e, time.Time{})
		}
	}
	return End{Base: base, Note: next}
}

// EarlierWithin returns the ids that begin with that of the handler and a slash, and
// for which [Note.Earlier] knows an essence; sorted.
func (n *Note) EarlierWithin(handler string) []string {
	var ids []string
	for id, s := range n.saw {
		if s.stopped.IsZero() && strings.HasPrefix(id, handler+"/") {
			ids = append(ids, id)
		}
	}
	slices.Sort(ids)
	return ids
}

// earliestLate returns the earliest sighting of something else than the final
// essence by any handler; nil if there is none.
func (n *Note) earliestLate(final map[string]any) *sighting {
	var earliest *sighting
	for _, s := range n.saw {
		earlier := earliest == nil || s.stopped.Before(earliest.stopped) || s.stopped.Equal(earliest.stopped) && s.essence < earliest.essence
		if earlier && !diff.Equal(essence.Undigest(n.essences[s.essence], final), final) {
			earliest = &s
		}
	}
	return earliest
}

func sameMoment(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

// Equal reports whether both notes say the same.
func (n *Note) Equal(other *Note) bool {
	same := n.Key == other.Key && n.Reason == other.Reason && n.Base == other.Base && sameMoment(n.Started, other.Started) && len(n.saw) == len(other.saw) &&
		slices.EqualFunc(n.Todo, other.Todo, func(a, b Todo) bool { return a.Handler == b.Handler && diff.Equal(a.Patch, b.Patch) })
	for id, s := range n.saw {
		o, ok := other.saw[id]
		same = same && ok && sameMoment(s.stopped, o.stopped) && diff.Equal(n.essences[s.essence], other.essences[o.essence])
	}
	return same
}

// Rename makes what is known of a former id known of the present one, unless
// something is known of that.
func (n *Note) Rename(former, id string) {
	s, ok := n.saw[former]
	if _, known := n.saw[id]; ok && !known {
		n.saw[id] = s
	}
	delete(n.saw, former)
}
