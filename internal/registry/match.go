package registry

import (
	"slices"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/filter"
)

// Set is handlers in the order of their declaration; of one resource and of
// changes, where it matters.
type Set []*Handler

// Of returns the handlers of one family, in their order.
func (s Set) Of(f Family) Set {
	var found Set
	for _, h := range s {
		if h.Family == f {
			found = append(found, h)
		}
	}
	return found
}

// Interested tells whether any handler could ever be for this object, whatever
// the reason. If none is, the object is left alone altogether.
func (s Set) Interested(r *Request) bool {
	for _, h := range s {
		if h.prematches(r) {
			return true
		}
	}
	return false
}

// Blocking tells whether any handler wants deletions to wait for it.
func (s Set) Blocking(r *Request) bool {
	for _, h := range s {
		if h.Mandatory && h.prematches(r) {
			return true
		}
	}
	return false
}

// Select returns the handlers to be run for the cause. Of several with one id, it
// is the one that was declared first: they share a record.
func (s Set) Select(r *Request) Set {
	return s.SelectBy(func(h *Handler) bool { return h.Matches(r) })
}

// SelectBy returns the handlers that match, the first one of each id.
func (s Set) SelectBy(matches func(*Handler) bool) Set {
	var selected Set
	for _, h := range s {
		if !selected.Has(h.ID) && matches(h) {
			selected = append(selected, h)
		}
	}
	return selected
}

// Has reports whether a handler of the set has the id.
func (s Set) Has(id string) bool {
	return slices.ContainsFunc(s, func(h *Handler) bool { return h.ID == id })
}

// IDs are the stored ids of the handlers, former ones included.
func (s Set) IDs() []string {
	ids := make([]string, 0, len(s))
	for _, h := range s {
		ids = append(append(ids, h.ID), h.Formerly...)
	}
	return ids
}

// Fields are the paths of the fields that handlers are about; they are part
// of what counts as a change.
func (s Set) Fields() []fieldpath.Path {
	var paths []fieldpath.Path
	for _, h := range s {
		if h.Change != nil {
			paths = append(paths, h.Change.Path)
		}
	}
	return paths
}

// Matches tells whether the handler is to be run for the cause.
func (h *Handler) Matches(r *Request) bool {
	return h.reasoned(r.Cause) && h.prematches(r)
}

// reasoned checks what depends on the reason: a handler declared for several
// may match by any of them.
func (h *Handler) reasoned(c *cause.Cause) bool {
	if h.Reasons[c.Reason] && h.moved(c, h.AnyMove || c.Reason == cause.Update) {
		return true
	}
	resumes := h.Reasons[cause.Resume] && c.Initial && (h.Deleted || !c.Deleting)
	return resumes && h.moved(c, h.AnyMove)
}

func (h *Handler) moved(c *cause.Cause, needed bool) bool {
	return h.Change == nil || h.Change.Happened(value(c.Old, h.Change), value(c.New, h.Change), needed)
}

// prematches checks all that does not depend on the reason.
func (h *Handler) prematches(r *Request) bool {
	if h.Change != nil && !h.Change.Touches(value(r.Cause.New, h.Change), value(r.Cause.Old, h.Change)) {
		return false
	}
	return h.MatchesObject(r)
}

// MatchesEvent reports whether an event handler is for the object as it is now,
// its field included.
func (h *Handler) MatchesEvent(r *Request) bool {
	if c := h.Change; c != nil {
		v, present := r.Body.Lookup(c.Path...)
		if !c.Touches(filter.Value{Is: v, Present: present}) {
			return false
		}
	}
	return h.MatchesObject(r)
}

// MatchesObject checks what depends only on the object as it is now.
func (h *Handler) MatchesObject(r *Request) bool {
	if !h.Criteria.Match(r.Body) {
		return false
	}
	for _, fn := range h.When {
		if !fn(r) {
			return false
		}
	}
	return true
}

func value(essence map[string]any, c *filter.Change) filter.Value {
	v, present := fieldpath.Lookup(essence, c.Path...)
	return filter.Value{Is: v, Present: present}
}

// Narrow is the cause as the handler is told it: reduced to its field.
func (h *Handler) Narrow(c *cause.Cause) *cause.Cause {
	if h.Change == nil || len(h.Change.Path) == 0 {
		return c
	}
	narrowed := *c
	narrowed.Field = h.Change.Path
	narrowed.Diff = c.Diff.At(h.Change.Path...)
	return &narrowed
}
