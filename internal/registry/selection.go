package registry

import "fmt"

// CheckSelect returns why the handler cannot be used with its selection at the
// server; nil if it can. An object that leaves a selection looks deleted, so
// handlers that depend on seeing real deletions exclude one.
func (h *Handler) CheckSelect() error {
	if h.Select == "" || !h.Mandatory && h.Family != Background && h.Family != Events {
		return nil
	}
	return fmt.Errorf("handler %q (%s) cannot be used with Select(%q): an object that leaves the selection would look deleted to it; use WithLabel instead",
		h.ID, h.Where, h.Select)
}

// CheckSameSelect returns why the two handlers of one resource cannot share its
// stream; nil if they can. Reviews need no stream.
func (h *Handler) CheckSameSelect(other *Handler) error {
	if h.Select == other.Select || h.Family == Reviews || other.Family == Reviews {
		return nil
	}
	return fmt.Errorf("handlers of %s select different objects: %q by %q (%s), %q by %q (%s); use one selection for all",
		h.Of, h.Select, h.ID, h.Where, other.Select, other.ID, other.Where)
}
