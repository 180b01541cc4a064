package reconcile

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/handler"
)

// Plan returns the actions of a [Task] without executing them. It only reads. A child
// whose dependency would be created or changed waits for it.
func (r *Runner) Plan(ctx context.Context, t Task) ([]children.Action, error) {
	x := &run{Runner: r, Task: t, ready: map[*handler.Wanted]bool{}}
	var actions []children.Action
	for _, w := range t.Wanted {
		if w.Problem == nil {
			w.Problem = x.mark(w)
		}
		if w.Problem != nil {
			return nil, fmt.Errorf("declare %s: %w", w.Key, w.Problem)
		}
		child := x.Store.Find(w.Key)
		if child == nil {
			var err error
			if child, err = r.read(ctx, w.Info, w.Key); err != nil {
				return nil, fmt.Errorf("read %s: %w", w.Key, err)
			}
		}
		action := children.Decide(w.Desired, x.live(child), t.Inventory.Find(w.Key), x.awaited(w))
		if child != nil && action.Verb != children.Change {
			x.ready[w], _, _ = Ready(w, child.Body())
		}
		actions = append(actions, action)
	}
	for _, e := range append(slices.Clone(t.Inventory.Entries), x.Unlisted(t.Owner.UID, t.Inventory.Entries)...) {
		if e.Orphan || slices.ContainsFunc(t.Wanted, func(w *handler.Wanted) bool { return w.Key == e.Key }) {
			continue
		}
		child, err := r.findOwn(ctx, t.Owner, e)
		if err != nil {
			return nil, err
		}
		if child != nil {
			actions = append(actions, children.Action{Key: e.Key, Verb: children.Delete, Reason: e.Key.String() + " is no longer declared"})
		}
	}
	return actions, nil
}
