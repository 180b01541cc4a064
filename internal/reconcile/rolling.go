package reconcile

import (
	"fmt"

	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
)

// rolling returns the reason why a child must not be changed now: too many others of its
// group are not ready. "" means that it may be changed. A child that is not ready itself
// may always be changed, because a change takes nothing away from the group.
func (x *run) rolling(w *handler.Wanted, child *childwatch.Child) string {
	group := w.Rolling.Group
	if group == "" {
		return ""
	}
	if ready, _, _ := Ready(w, child.Body()); !ready {
		return ""
	}
	if reason := x.full[group]; reason != "" {
		return fmt.Sprintf("%s waits for %s", w.Key, reason)
	}
	unready, first := 0, ""
	for _, other := range x.Wanted {
		if other != w && other.Rolling.Group == group && x.unavailable(other) {
			if unready++; first == "" {
				first = other.Key.String()
			}
		}
	}
	if unready < w.Rolling.Limit {
		return ""
	}
	x.full[group] = first
	return fmt.Sprintf("%s waits for %s", w.Key, first)
}

// unavailable reports whether a child that was created before is not ready now.
func (x *run) unavailable(w *handler.Wanted) bool {
	if x.turned[w] {
		return true
	}
	child := x.Store.Find(w.Key)
	if child == nil {
		return x.Inventory.Find(w.Key) != nil
	}
	ready, _, _ := Ready(w, child.Body())
	return !ready
}
