package registry

import "fmt"

// CheckSelect returns an error if the handler cannot be used with its label selector.
// An object that leaves the selection looks deleted. Handlers that depend on real
// deletions therefore do not allow a selector.
func (h *Handler) CheckSelect() error {
	if h.Select == "" || !h.Mandatory && h.Family != Background && h.Family != Events {
		return nil
	}
	return fmt.Errorf("handler %q (%s) cannot be used with Select(%q): an object that leaves the selection would look deleted to it; use WithLabel instead",
		h.ID, h.Where, h.Select)
}

// CheckSameSelect returns an error if two handlers of one resource have different label
// selectors: they share one watch. Review handlers need no watch.
func (h *Handler) CheckSameSelect(other *Handler) error {
	if h.Select == other.Select || h.Family == Reviews || other.Family == Reviews {
		return nil
	}
	return fmt.Errorf("handlers of %s select different objects: %q by %q (%s), %q by %q (%s); use one selection for all",
		h.Of, h.Select, h.ID, h.Where, other.Select, other.ID, other.Where)
}
