package handler

import (
	"slices"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/jsonvalue"
)

// Set is a list of handlers in the order of their declaration.
type Set []*Handler

// Of returns the handlers of one family, in the same order.
func (s Set) Of(f Family) Set {
	var found Set
	for _, h := range s {
		if h.Family == f {
			found = append(found, h)
		}
	}
	return found
}

// Interested reports whether some handler matches the object, regardless of the reason.
// If none does, the operator does not touch the object.
func (s Set) Interested(r *Request) bool {
	for _, h := range s {
		if h.prematches(r) {
			return true
		}
	}
	return false
}

// Blocking reports whether some matching handler requires the finalizer.
func (s Set) Blocking(r *Request) bool {
	for _, h := range s {
		if h.Mandatory && h.prematches(r) {
			return true
		}
	}
	return false
}

// Select returns the handlers that match the cause of the request. Of several handlers
// with one id, which share a record, it returns the one that was declared first.
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

// IDs returns the ids of the handlers, including former ids.
func (s Set) IDs() []string {
	ids := make([]string, 0, len(s)+1) // most callers append one
	for _, h := range s {
		ids = append(append(ids, h.ID), h.Formerly...)
	}
	return ids
}

// Fields returns the paths of the fields that handlers are declared for. Changes of
// these fields are handled even outside of the essence.
func (s Set) Fields() []jsonvalue.Path {
	var paths []jsonvalue.Path
	for _, h := range s {
		if h.Change != nil {
			paths = append(paths, h.Change.Path)
		}
	}
	return paths
}

// Matches reports whether the handler matches the cause and the object of the request.
func (h *Handler) Matches(r *Request) bool { return h.Miss(r) == Miss{} }

// Miss returns the first criterion that the cause or the object of the request does not
// meet. The zero value means that the handler matches.
func (h *Handler) Miss(r *Request) Miss {
	if c := h.missedReason(r.Cause); c != Met {
		return Miss{Criterion: c}
	}
	return h.premiss(r)
}

// missedReason returns why the handler does not match the reason. A handler that is
// declared for several reasons may match by any of them.
func (h *Handler) missedReason(c *cause.Cause) Criterion {
	missed := OfReason
	if h.Reasons[c.Reason] {
		if missed = h.unmoved(c, h.AnyMove || c.Reason == cause.Update); missed == Met {
			return Met
		}
	}
	if h.Reasons[cause.Resume] && c.Initial && (h.Deleted || !c.Deleting) {
		return h.unmoved(c, h.AnyMove)
	}
	return missed
}

// unmoved returns why the field of the handler has not changed as declared. needed means
// that an unchanged field does not match.
func (h *Handler) unmoved(c *cause.Cause, needed bool) Criterion {
	if h.Change == nil {
		return Met
	}
	return h.Change.missed(value(c.Old, h.Change), value(c.New, h.Change), needed)
}

// prematches checks all conditions that do not depend on the reason.
func (h *Handler) prematches(r *Request) bool { return h.premiss(r) == Miss{} }

func (h *Handler) premiss(r *Request) Miss {
	if h.Change != nil && !h.Change.Touches(value(r.Cause.New, h.Change), value(r.Cause.Old, h.Change)) {
		return Miss{Criterion: OfValue}
	}
	return h.ObjectMiss(r)
}

// MatchesEvent reports whether an event handler matches the current object. If the
// handler has a field, the object must have it, with a matching value.
func (h *Handler) MatchesEvent(r *Request) bool { return h.EventMiss(r) == Miss{} }

// EventMiss returns the first criterion of an event handler, a daemon or a timer that the
// current object does not meet.
func (h *Handler) EventMiss(r *Request) Miss {
	if c := h.Change; c != nil {
		v, present := r.Body.Lookup(c.Path...)
		if !c.Touches(Value{Is: v, Present: present}) {
			return Miss{Criterion: OfValue}
		}
	}
	return h.ObjectMiss(r)
}

// MatchesObject reports whether the current object meets the criteria and all When
// functions of the handler.
func (h *Handler) MatchesObject(r *Request) bool { return h.ObjectMiss(r) == Miss{} }

// ObjectMiss returns the first criterion or When function that the current object does
// not meet.
func (h *Handler) ObjectMiss(r *Request) Miss {
	if missed := h.Criteria.miss(r.Body); missed.Criterion != Met {
		return missed
	}
	for i, fn := range h.When {
		if !fn(r) {
			return Miss{OfFunction, i}
		}
	}
	return Miss{}
}

func value(essence map[string]any, c *Change) Value {
	v, present := jsonvalue.Lookup(essence, c.Path...)
	return Value{Is: v, Present: present}
}

// Narrow returns the cause as the handler sees it: with the diff narrowed to the
// handler's field. It does not modify c.
func (h *Handler) Narrow(c *cause.Cause) *cause.Cause {
	if h.Change == nil || len(h.Change.Path) == 0 {
		return c
	}
	narrowed := *c
	narrowed.Field = h.Change.Path
	narrowed.Diff = c.Diff.At(h.Change.Path...)
	return &narrowed
}
