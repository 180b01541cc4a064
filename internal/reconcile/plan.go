package reconcile

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/childwatch"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/tracing"
)

// Step is a planned action.
type Step struct {
	children.Action
	// Diff has the differences between the live child and the response of the API server to
	// a dry run of the change. For a new child, it has one item with the whole child.
	Diff diff.Diff
	// Recreate means that the child is deleted and created again, because an immutable field
	// changes.
	Recreate bool
	// Refused is the error of the dry run. nil means that the API server accepts the change.
	Refused error
}

// Plan returns the actions of a [Task] without executing them. It reads, and sends dry
// runs. A child whose dependency would be created or changed waits for it. A change that
// has no effect is none.
func (r *Runner) Plan(ctx context.Context, t Task) ([]Step, error) {
	x := &run{Runner: r, Task: t, began: time.Now(), ready: map[*handler.Wanted]bool{}, full: map[string]string{}, turned: map[*handler.Wanted]bool{}}
	var steps []Step
	for _, w := range t.Wanted {
		if w.Problem == nil {
			w.Problem = x.mark(w)
		}
		if w.Problem != nil {
			return nil, fmt.Errorf("declare %s: %w", w.Key, w.Problem)
		}
		step, err := x.plan(ctx, w)
		if err != nil {
			return nil, err
		}
		steps = append(steps, step)
	}
	known := slices.Clone(t.Inventory.Entries)
	if t.Alone || len(t.Others) == 0 {
		known = append(known, x.Unlisted(t.Owner, known)...)
	}
	kinds := x.kinds(x.began, known)
	for _, e := range known {
		if e.Orphan || slices.ContainsFunc(t.Wanted, func(w *handler.Wanted) bool { return w.Key == e.Key }) {
			continue
		}
		child, err := r.findOwn(ctx, kinds, t.Owner, e)
		if err != nil {
			return nil, err
		}
		if child != nil {
			steps = append(steps, Step{Action: children.Action{Key: e.Key, Verb: children.Delete, Reason: e.Key.String() + " is no longer declared"}})
		}
	}
	return steps, nil
}

// plan plans the action for one declared child.
func (x *run) plan(ctx context.Context, w *handler.Wanted) (Step, error) {
	child := x.Store.Find(w.Key)
	if child == nil {
		var err error
		if child, err = x.read(ctx, x.Owner.Namespace, w.Info, w.Key); err != nil {
			return Step{}, fmt.Errorf("read %s: %w", w.Key, err)
		}
	}
	live, err := x.live(ctx, child)
	if err != nil {
		return Step{}, err
	}
	step := Step{Action: children.Decide(w.Desired, live, x.Inventory.Find(w.Key), x.awaited(w))}
	if step.Verb == children.Change || step.Verb == children.Create || step.Verb == children.Repair {
		step.Diff, step.Refused = x.dryRun(ctx, w, child)
	}
	if immutable(step.Refused, child) && w.AllowRecreate {
		step.Recreate, step.Refused = true, nil
		step.Reason = fmt.Sprintf("an immutable field of %s changes", w.Key)
	}
	if child != nil && step.Refused == nil && !step.Recreate && len(step.Diff) == 0 && (step.Verb == children.Change || step.Verb == children.Repair) {
		step.Action = children.Action{Key: w.Key}
	}
	if step.Verb == children.Change {
		if reason := x.rolling(ctx, w, child); reason != "" {
			step.Verb, step.Reason = children.Wait, reason
		} else {
			x.turned[w] = true
		}
	}
	if child != nil && step.Verb != children.Change && step.Verb != children.Wait {
		x.ready[w], _, _ = Ready(w, child.Readiness, x.Content(ctx, x.Owner.Namespace, child))
	}
	return step, nil
}

// dryRun asks the API server what an apply of the child would change. child may be nil.
func (x *run) dryRun(ctx context.Context, w *handler.Wanted, child *childwatch.Child) (diff.Diff, error) {
	fields, before := w.Fields, any(nil)
	if child != nil {
		body, err := x.Content(ctx, x.Owner.Namespace, child)()
		if err != nil {
			return nil, err
		}
		fields, before = with(without(fields, w.Initial), "uid", child.UID), essential(body.Map())
	}
	target := kube.Target{Info: w.Info, Namespace: w.Namespace, Name: w.Name}
	after, err := x.Objects.Apply(ctx, target, fields, kube.FieldManager(x.Name), kube.Force(), kube.DryRun())
	if err != nil {
		return nil, err
	}
	return diff.Of(before, any(essential(after.Map()))), nil
}

// essential returns an object without the metadata that the API server maintains, and
// without the annotations that describe its last apply: the digest and the trace.
func essential(o map[string]any) map[string]any {
	o = maps.Clone(o)
	metadata, _ := o["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, key := range []string{"managedFields", "resourceVersion", "generation", "uid", "creationTimestamp", "selfLink"} {
		delete(metadata, key)
	}
	if annotations, ok := metadata["annotations"].(map[string]any); ok {
		annotations = maps.Clone(annotations)
		delete(annotations, tracing.Annotation)
		if delete(annotations, childwatch.DigestAnnotation); len(annotations) > 0 {
			metadata["annotations"] = annotations
		} else {
			delete(metadata, "annotations")
		}
	}
	o["metadata"] = metadata
	return o
}
