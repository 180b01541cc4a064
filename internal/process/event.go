package process

import "gopf.dev/gopf/internal/object"

// Event is one state of an object, or its deletion, as a stream delivers it.
type Event struct {
	Type   string // "ADDED", "MODIFIED", "DELETED", or "" for a list item
	Body   *object.Body
	Missed bool // its deletion was not seen, but found out: only the identity is known

	// Mark orders lists, watch events and writes of this process: it is the value of
	// one counter when the event arrived, or of a list item, when the list began.
	// What has a higher mark than a list may be newer than its items.
	Mark uint64

	// List is the mark of the list that brought the object; 0 if none did. A watch
	// event that took the place of a waiting list item has that list's mark here, and
	// its own in Mark.
	List uint64

	// Authoritative marks items of the first list after the server's versions went
	// back. Their versions are not comparable with those known before.
	Authoritative bool

	unsettled bool // a glance did not do
}

// Listed reports whether the object came with a list rather than with a change.
func (e *Event) Listed() bool { return e.Type == "" }

// Gone reports whether the object does not exist any more.
func (e *Event) Gone() bool { return e.Type == "DELETED" }

// Join returns the one event that stands for two of the same object, of which next
// came last. Neither is a deletion. The newer state survives, and the fact that it
// was listed, whichever of the two was.
func (e *Event) Join(next *Event) *Event {
	joined := *e
	if next.supersedes(e) {
		joined = *next
	}
	if e.Listed() || next.Listed() {
		joined.Type = ""
	}
	joined.Mark, joined.List = max(e.Mark, next.Mark), max(e.List, next.List)
	joined.Authoritative = e.Authoritative || next.Authoritative
	return &joined
}

// supersedes reports whether e, which came after former, is at least as new. A list
// item is newer than all that came before its list began. Watch events arrive in
// their order, but a replayed one has a lower version.
func (e *Event) supersedes(former *Event) bool {
	if e.Listed() && (e.Authoritative || !numeric(e.Body.ResourceVersion, former.Body.ResourceVersion)) {
		return former.Mark < e.List
	}
	return !newer(former.Body.ResourceVersion, e.Body.ResourceVersion) ||
		!numeric(e.Body.ResourceVersion, former.Body.ResourceVersion) ||
		e.Listed() && former.Mark < e.List
}

// numeric reports whether both versions are numbers.
func numeric(a, b string) bool {
	_, okA := object.Identity{ResourceVersion: a}.Version()
	_, okB := object.Identity{ResourceVersion: b}.Version()
	return okA && okB
}

// newer compares versions of one object. Of versions that are not numbers, any
// other one counts as newer.
func newer(a, b string) bool {
	x, okX := object.Identity{ResourceVersion: a}.Version()
	y, okY := object.Identity{ResourceVersion: b}.Version()
	if !okX || !okY {
		return a != b
	}
	return x > y
}

// note remembers the mark of something that was learned or done about the object.
func (m *Memory) note(mark uint64) { m.mark = max(m.mark, mark) }

// wrote notes that a write of this process to the object has ended. Lists that
// began before may not contain it.
func (p *Processor) wrote(m *Memory) {
	if p.Mark != nil {
		m.note(p.Mark())
	}
}

// Mark is that of the last write, watch event or list of the object.
func (m *Memory) Mark() uint64 { return m.mark }

// precedes reports whether e is from a list that began after everything that is
// known of the object.
func (m *Memory) precedes(e *Event) bool { return e.Listed() && m.mark < e.List }

// isNews reports whether the state of an event was not acted on yet.
func (m *Memory) isNew(e *Event) bool {
	v, seen := e.Body.ResourceVersion, m.seen()
	switch {
	case m.version == "":
		return true
	case e.Listed() && m.mark > e.Mark && !numeric(v, seen):
		return false // only the order of arrival counts, and something came after the list began
	case newer(v, seen):
		return true
	case v == m.version:
		return m.unchecked
	}
	// What was read anew when a write met a conflict is known, but was not acted on.
	return v == seen && newer(v, m.version)
}

// rewound reports whether e is a list item that counts although its version is not
// higher than the known one, because the cluster was restored from a backup.
func (m *Memory) rewound(e *Event) bool {
	return m.precedes(e) && (e.Authoritative || e.Body.ResourceVersion != m.seen())
}

// outdated reports whether a newer state than this one is known.
func (m *Memory) outdated(state *object.Body) bool {
	seen := m.seen()
	return seen != "" && newer(seen, state.ResourceVersion) && !newer(state.ResourceVersion, seen)
}
