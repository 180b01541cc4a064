package progress

import (
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// HandlingID is the id under which the handling note is stored, next to the records of
// handlers. Kopf has no handler with this id and does not touch the note.
const HandlingID = "gopf.handling"

// Note is the handling note: the stored state of one handling as a whole, next to the
// records of its handlers.
//
// Handlers of one handling may finish in different turns, and the object may change
// in between. The note keeps the essence that each finished handler saw. If some of
// them did not see the final essence when the handling ends, the note stays, and an
// update follows. Each handler of that update is selected by the essence that it saw.
type Note struct {
	// Key identifies the handling. It is empty before the handling is first saved.
	Key string
	// Reason is the reason of the handling.
	Reason cause.Reason
	// Started is the start of the handling. It is zero before the handling is first
	// saved.
	Started time.Time
	// Base identifies the base that was saved together with this note at the end of
	// the previous handling; see [BaseID]. It is empty if there was no such note.
	Base string
	// Todo has the changes that handlers requested and that are stored before they
	// are sent, in the order of sending.
	Todo []Todo

	essences []map[string]any // without duplicates
	saw      map[string]sighting
}

// sighting is the essence that one handler saw when it finished.
type sighting struct {
	essence int // the index in Note.essences
	// stopped is the time of the record at which the handler finished. It is zero if
	// the handler finished in the previous handling, whose records are gone.
	stopped time.Time
}

// Todo is a change that a handler requested and that is not sent yet.
type Todo struct {
	Handler string
	Patch   map[string]any // a merge patch
}

// Saw notes that a handler saw the essence and finished. stopped is the time in its
// record. The caller must not modify the essence afterwards.
func (n *Note) Saw(id string, essence map[string]any, stopped time.Time) {
	if n.saw == nil {
		n.saw = map[string]sighting{}
	}
	n.saw[id] = sighting{n.index(essence), stopped}
}

// SawLike is [Note.Saw] with the essence that another handler saw. The given essence
// counts if the note has none of the other handler.
func (n *Note) SawLike(id, other string, essence map[string]any, stopped time.Time) {
	if s, ok := n.saw[other]; ok {
		n.saw[id] = sighting{s.essence, stopped}
		return
	}
	n.Saw(id, essence, stopped)
}

// maxEssences limits the essences of a note, because each of them may be compared with
// the object for each handler. maxSightings limits the handlers, and maxTodo the unsent
// changes, of which each may take requests.
const (
	maxEssences  = 64
	maxSightings = 1 << 14
	maxTodo      = 1 << 12
)

// index returns the index of an essence, which is added if it is new. If there are too
// many, an empty essence stands for all further ones: it equals no state of an object
// with contents. Their handlers are then called once more rather than never.
func (n *Note) index(essence map[string]any) int {
	for i, known := range n.essences {
		if reflect.ValueOf(known).Pointer() == reflect.ValueOf(essence).Pointer() {
			return i // comparing the same map for each handler would be slow
		}
	}
	for i, known := range n.essences {
		if diff.Equal(known, essence) {
			return i
		}
	}
	switch len(n.essences) {
	case maxEssences:
	case maxEssences - 1:
		n.essences = append(n.essences, map[string]any{})
	default:
		n.essences = append(n.essences, essence)
	}
	return len(n.essences) - 1
}

// Sightings returns the number of handlers that finished.
func (n *Note) Sightings() int { return len(n.saw) }

// Earlier returns the essence that a handler saw when it finished in the previous
// handling. nil means that the handler saw the base.
func (n *Note) Earlier(id string) map[string]any {
	if s, ok := n.saw[id]; ok && s.stopped.IsZero() {
		return n.essences[s.essence]
	}
	return nil
}

// Followed reports whether the note remained from the previous handling, because some
// of its handlers did not see the base.
func (n *Note) Followed() bool {
	for _, s := range n.saw {
		if s.stopped.IsZero() {
			return true
		}
	}
	return false
}

// Renew replaces each essence in the note with the result of fn. Digests stay.
func (n *Note) Renew(fn func(essence map[string]any) map[string]any) {
	for i, e := range n.essences {
		if !essence.IsDigest(e) {
			n.essences[i] = fn(e)
		}
	}
}

// Empty reports whether the note has neither essences of handlers nor unsent changes.
func (n *Note) Empty() bool { return len(n.saw) == 0 && len(n.Todo) == 0 }

// Clone returns a copy that can be modified without modifying n.
func (n *Note) Clone() *Note {
	c := *n
	c.essences, c.Todo = slices.Clone(n.essences), slices.Clone(n.Todo)
	c.saw = maps.Clone(n.saw)
	return &c
}

// Digested returns a copy with digests of the essences; see [essence.Digest].
func (n *Note) Digested() *Note {
	c := n.Clone()
	for i, e := range c.essences {
		if digest, err := essence.Digest(e); err == nil && !essence.IsDigest(e) {
			c.essences[i] = digest
		}
	}
	return c
}

// Verify drops the sightings that are obsolete because another operator has started or
// finished a handling. A sighting of this handling must have a finished record with
// the same time. A sighting of the previous handling is valid only with the base that
// was saved with it. records must include those of sub-handlers.
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

// Continue makes n the note of a handling of the reason. If n belongs to a handling of
// another reason, only the sightings of the previous handling stay.
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

// Absorb adds a write of the operator itself to the essences that the handlers saw, so
// the write is not a change for them. now is the essence before the write, and patched
// is the one after it.
func (n *Note) Absorb(now, patched map[string]any) {
	change := patch.Between(now, patched)
	if len(change) == 0 {
		return
	}
	var before essence.Undigester
	var digest map[string]any // of patched
	for i, e := range n.essences {
		switch {
		case !essence.IsDigest(e):
			e = jsonvalue.Clone(e).(map[string]any)
			patch.Apply(e, change)
			storage.Tidy(e)
			n.essences[i] = e
		case diff.Equal(before.Undigest(e, now), now):
			if digest == nil {
				digest, _ = essence.Digest(patched) // nil after an error
			}
			if digest != nil {
				n.essences[i] = digest
			}
		}
	}
}

// End is the result of a handling.
type End struct {
	Base map[string]any // the new base
	Note *Note          // the note for the update that follows; nil means that none does
}

// End ends the handling with the final essence. A handler is late if it saw another
// essence. If none is late, the final essence becomes the base. Otherwise the base is
// the essence that the earliest late handler saw, and an update follows.
//
// records has the records of all handlers, including sub-handlers. old is the current
// base; nil means none. declared has the ids of the handlers for the reason. Handlers
// without a sighting count as follows: an unfinished handler with a record saw old, if
// there is an old base. For a handler that another operator finished, nothing is noted.
// All others saw the final essence.
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
			return nil // another operator called it with an unknown essence
		case old != nil && !records[id].Started.IsZero():
			return old
		}
		return final
	}
	sawBase := comparisons{with: base}
	// In the next note, a handler without a sighting counts as one that saw the base.
	// But a late sub-handler that saw the base needs a sighting if its parent saw
	// something else. Otherwise neither of them would be called.
	hidden := map[string]bool{}
	for parent, r := range records {
		if len(r.Subrefs) == 0 || sawBase.equal(own(parent)) {
			continue
		}
		for _, sub := range r.Subrefs {
			hidden[sub] = true
		}
	}
	next := &Note{Reason: cause.Update}
	ids := slices.Concat(slices.Collect(maps.Keys(n.saw)), slices.Collect(maps.Keys(records)), declared)
	slices.Sort(ids)
	for _, id := range slices.Compact(ids) {
		if e := own(id); e != nil && (!sawBase.equal(e) || hidden[id]) {
			next.Saw(id, e, time.Time{})
		}
	}
	return End{Base: base, Note: next}
}

// comparisons compares essences with one essence. Each map is compared once, because
// many handlers see the same.
type comparisons struct {
	with  map[string]any
	known map[uintptr]bool
}

func (c *comparisons) equal(e map[string]any) bool {
	if c.known == nil {
		c.known = map[uintptr]bool{}
	}
	place := reflect.ValueOf(e).Pointer()
	same, known := c.known[place]
	if !known {
		same = diff.Equal(e, c.with)
		c.known[place] = same
	}
	return same
}

// EarlierStates returns the essences that the handlers saw when they finished in the
// previous handling, each once, in the order of the ids.
func (n *Note) EarlierStates(ids []string) []map[string]any {
	var states []map[string]any
	found := map[int]bool{}
	for _, id := range ids {
		if s, ok := n.saw[id]; ok && s.stopped.IsZero() && !found[s.essence] {
			found[s.essence] = true
			states = append(states, n.essences[s.essence])
		}
	}
	return states
}

// SeenWithin returns the essences that the handler and its sub-handlers saw when they
// finished, in this handling or in the previous one, each once.
func (n *Note) SeenWithin(handler string) []map[string]any {
	found := make([]bool, len(n.essences))
	for id, s := range n.saw {
		found[s.essence] = found[s.essence] || id == handler || strings.HasPrefix(id, handler+"/")
	}
	var states []map[string]any
	for i, e := range n.essences {
		if found[i] {
			states = append(states, e)
		}
	}
	return states
}

// EarlierWithin returns the ids of sub-handlers of the handler for which
// [Note.Earlier] returns an essence, sorted.
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

// Late reports whether a handler is late; see [Note.End].
func (n *Note) Late(final map[string]any) bool { return n.earliestLate(final) != nil }

// earliestLate returns the earliest sighting of an essence other than the final one.
// nil means that there is none.
func (n *Note) earliestLate(final map[string]any) *sighting {
	isFinal := make([]bool, len(n.essences))
	var behind essence.Undigester // a forged note may have many digests
	for i, e := range n.essences {
		isFinal[i] = diff.Equal(behind.Undigest(e, final), final)
	}
	var earliest *sighting
	for _, s := range n.saw {
		earlier := earliest == nil || s.stopped.Before(earliest.stopped) || s.stopped.Equal(earliest.stopped) && s.essence < earliest.essence
		if earlier && !isFinal[s.essence] {
			earliest = &s
		}
	}
	return earliest
}

// sameMoment compares times with the precision of stored records.
func sameMoment(a, b time.Time) bool {
	return a.Truncate(time.Microsecond).Equal(b.Truncate(time.Microsecond))
}

// Equal reports whether both notes have the same contents.
func (n *Note) Equal(other *Note) bool {
	same := n.Key == other.Key && n.Reason == other.Reason && n.Base == other.Base && sameMoment(n.Started, other.Started) && len(n.saw) == len(other.saw) &&
		slices.EqualFunc(n.Todo, other.Todo, func(a, b Todo) bool { return a.Handler == b.Handler && diff.Equal(a.Patch, b.Patch) })
	compared := map[[2]int]bool{} // many handlers saw the same
	for id, s := range n.saw {
		o, ok := other.saw[id]
		if same = same && ok && sameMoment(s.stopped, o.stopped); !same {
			return false
		}
		if pair := [2]int{s.essence, o.essence}; !compared[pair] {
			same = diff.Equal(n.essences[s.essence], other.essences[o.essence])
			compared[pair] = true
		}
	}
	return same
}

// Rename moves the sighting of a former handler id to the current one, unless that has
// its own.
func (n *Note) Rename(former, id string) {
	s, ok := n.saw[former]
	if _, known := n.saw[id]; ok && !known {
		n.saw[id] = s
	}
	delete(n.saw, former)
}
