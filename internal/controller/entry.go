package controller

import (
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// entry holds the reasons of a turn; there may be several.
type entry struct {
	event *process.Event
	wake  *process.Wake
	alarm bool
	hurry bool   // skip the backoff after an error
	since uint32 // of the event: the number of pauses before its watch started
	left  bool   // the event is a state that the label selector does not match
	shed  int    // the cost of the turn, if the event has only the identity; see [Controller.shed]

	packed *object.Packed // the content of an entry that was shed; nil means that it is read again

	namespace string // of the object, if it is known; namespaces take turns
}

// add appends an entry to the queued ones of an object, or merges it with the last.
// Change handlers need only the newest state, so the newer of two queued events
// replaces the older one. With event handlers, all events stay. Deletions are never
// replaced or dropped, except for those that [Controller.reenters].
func (c *Controller) add(waiting []entry, e entry) []entry {
	return c.join(waiting, e, len(c.processor.Watchers) > 0)
}

// merge is add for an object whose handlers take so long that too many events wait for
// them: then only the newest state stays, even with event handlers.
func (c *Controller) merge(waiting []entry, e entry) []entry { return c.join(waiting, e, false) }

// join implements add and merge. every means that all events stay.
func (c *Controller) join(waiting []entry, e entry, every bool) []entry {
	e = c.fresh(e)
	if len(waiting) == 0 {
		return append(waiting, e)
	}
	last := &waiting[len(waiting)-1]
	e = e.join(*last)
	switch {
	case e.event == nil: // the queued entry leads to a turn in any case
		last.wake, last.alarm, last.hurry = e.wake, e.alarm, e.hurry
	case last.event == nil || e.event.Gone() && !every:
		*last = e
	case (!every || last.event.Missed) && c.reenters(last.event, e.event): // see [Controller.resolve]
		*last = e
	case last.event.Gone() || e.event.Gone() || every && last.shed == 0:
		return append(waiting, e)
	default:
		before := *last
		*last = e
		if last.event = before.event.Join(e.event); last.event.Body == before.event.Body {
			last.shed, last.packed = before.shed, before.packed
		}
	}
	return waiting
}

// urgent reports whether an entry goes ahead of list items. At startup, long lists are
// queued, and users wait for the effects of live events.
func urgent(e entry) bool { return e.event == nil || !e.event.Listed() }

// weigh returns the size of an entry in bytes, for the limit of the backlog.
func weigh(e entry) int {
	if e.event == nil || e.shed > 0 {
		return 0
	}
	return e.event.Body.Size()
}

// keeps returns the bytes that an entry keeps although it was shed.
func keeps(e entry) int {
	if e.packed == nil {
		return 0
	}
	return e.packed.Size()
}
