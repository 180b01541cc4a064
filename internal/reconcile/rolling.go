package reconcile

import (
	"context"
	"fmt"

	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
)

// rolling returns the reason why a child must not be changed now: too many others of its
// group are not ready. "" means that it may be changed. A child that is not ready itself
// may always be changed, because a change takes nothing away from the group.
func (x *run) rolling(ctx context.Context, w *handler.Wanted, child *childwatch.Child) string {
	group := w.Rolling.Group
	if group == "" {
		return ""
	}
	if !x.isReady(ctx, w, child) {
		if w.Problem != nil { // it is not known whether the child is ready
			return w.Problem.Error()
		}
		return ""
	}
	if reason := x.full[group]; reason != "" {
		return fmt.Sprintf("%s waits for %s", w.Key, reason)
	}
	unready, first := 0, ""
	for _, other := range x.Wanted {
		if other == w || other.Rolling.Group != group || !x.unavailable(ctx, other) {
			continue
		}
		if first == "" {
			first = other.Key.String()
		}
		if unready++; unready >= w.Rolling.Limit {
			x.full[group] = first
			return fmt.Sprintf("%s waits for %s", w.Key, first)
		}
	}
	return ""
}

// unavailable reports whether a child that was created before is not ready now.
func (x *run) unavailable(ctx context.Context, w *handler.Wanted) bool {
	if x.turned[w] {
		return true
	}
	child := x.Store.Find(w.Key)
	if child == nil {
		return x.Inventory.Find(w.Key) != nil
	}
	return !x.isReady(ctx, w, child)
}

// judged is a version of a child, and whether it is ready.
type judged struct {
	child *childwatch.Child
	ready bool
}

// isReady reports whether a child is ready. Each change looks at all others of its group,
// and there may be thousands of large ones, so each version is decoded once.
func (x *run) isReady(ctx context.Context, w *handler.Wanted, child *childwatch.Child) bool {
	if last, ok := x.judged[w]; ok && last.child.Same(child) {
		return last.ready
	}
	ready, _, _ := Ready(w, child.Readiness, x.Content(ctx, x.Owner.Namespace, child))
	if x.judged == nil {
		x.judged = map[*handler.Wanted]judged{}
	}
	x.judged[w] = judged{child, ready}
	return ready
}
