package process

import (
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// Event is one state of an object, or its deletion, as a stream delivers it.
type Event struct {
	Type   kube.EventType // Listed, Added, Modified or Deleted
	Body   *object.Body
	Missed bool // the deletion was detected by a list, not watched: only the identity is known

	// Mark orders lists, watch events and writes of this process. It is the value of
	// one counter when the watch event arrived; for a list item, when the list began.
	// Events and writes with a higher mark than a list may be newer than its items.
	Mark uint64

	// List is the mark of the list that the object is from; 0 for watch events. A
	// watch event that replaced a queued list item has that list's mark here, and its
	// own in Mark.
	List uint64

	// Authoritative marks items of the first list after the server's versions went
	// back. Their versions are not comparable with those known before.
	Authoritative bool

	unsettled bool // TurnIfSettled found that the object needs a turn
}

// Listed reports whether the event is a list item rather than a watch event.
func (e *Event) Listed() bool { return e.Type == kube.Listed }

// Gone reports whether the object no longer exists.
func (e *Event) Gone() bool { return e.Type == kube.Deleted }

// Join merges two queued events of one object, of which next arrived last. Neither may
// be a deletion. The newer state survives. The result counts as listed if either is.
func (e *Event) Join(next *Event) *Event {
	joined := *e
	if next.supersedes(e) {
		joined = *next
	}
	if e.Listed() || next.Listed() {
		joined.Type = kube.Listed
	}
	joined.Mark, joined.List = max(e.Mark, next.Mark), max(e.List, next.List)
	joined.Authoritative = e.Authoritative || next.Authoritative
	return &joined
}

// supersedes reports whether e, which arrived after former, is at least as new. A list
// item is newer than everything that arrived before its list began. Watch events
// arrive in order, but a replayed one has a lower version.
func (e *Event) supersedes(former *Event) bool {
	if e.Listed() && (e.Authoritative || !numeric(e.Body.ResourceVersion, former.Body.ResourceVersion)) {
		return former.Mark < e.List
	}
	return !newer(former.Body.ResourceVersion, e.Body.ResourceVersion) ||
		!numeric(e.Body.ResourceVersion, former.Body.ResourceVersion) ||
		e.Listed() && former.Mark < e.List
}

// numeric reports whether both versions are numbers.
func numeric(a, b string) bool { return versionOf(a).ordered(versionOf(b)) }

// newer reports whether version a of an object is newer than version b. If either is
// not a number, every other version counts as newer.
func newer(a, b string) bool { return versionOf(a).newer(versionOf(b)) }

// note notes the mark of a list item, watch event or write of the object.
func (m *Memory) note(mark uint64) { m.mark = max(m.mark, mark) }

// wrote notes that a write of this process to the object has ended. Lists that began
// earlier may not contain the write.
func (p *Processor) wrote(m *Memory) {
	if p.Mark != nil {
		m.note(p.Mark())
	}
}

// Mark returns the mark of the last write, watch event or list of the object.
func (m *Memory) Mark() uint64 { return m.mark }

// precedes reports whether everything known about the object precedes the list that e
// is from.
func (m *Memory) precedes(e *Event) bool { return e.Listed() && m.mark < e.List }

// isNew reports whether the state of an event was not acted on yet.
func (m *Memory) isNew(e *Event) bool {
	v, seen, acted := versionOf(e.Body.ResourceVersion), m.seen(), m.acted()
	switch {
	case acted == version{}:
		return true
	case e.Listed() && m.mark > e.Mark && !v.ordered(seen):
		return false // only the order of arrival counts, and something arrived after the list began
	case v.newer(seen):
		return true
	case v == acted:
		return m.unchecked
	}
	// A state that was read after a write conflict is known, but was not acted on.
	return v == seen && v.newer(acted)
}

// rewound reports whether e is a list item that counts although its version is not
// higher than the known one, because the cluster was restored from a backup.
func (m *Memory) rewound(e *Event) bool {
	return m.precedes(e) && (e.Authoritative || versionOf(e.Body.ResourceVersion) != m.seen())
}

// outdated reports whether a newer state than this one is known.
func (m *Memory) outdated(state *object.Body) bool {
	seen, this := m.seen(), versionOf(state.ResourceVersion)
	return seen != version{} && seen.newer(this) && !this.newer(seen)
}
