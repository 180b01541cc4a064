package process

import (
	"context"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// An operator may have had other names. State under the former names counts like state
// under the present ones. It is moved by the next write that happens for another reason:
// a restart with a new name writes nothing.

// progressMover and baseMover are implemented by storages with former places. Move adds
// the move of the state to the patch.
type (
	progressMover interface {
		Move(ctx context.Context, o storage.Object, p storage.Patch, ids []string) error
	}
	baseMover interface {
		Move(ctx context.Context, o storage.Object, p storage.Patch) error
	}
)

// move adds the move of former state to a change. It does nothing if the change writes
// nothing outside of the status, or if the object ends with it. An object that is being
// deleted keeps its base: there may be no space for another one. It also keeps its
// finalizers until it is released, because the API server accepts no others.
func (v *view) move(ctx context.Context, c *change) error {
	records, some := v.Config.Progress.(progressMover)
	base, also := v.Config.Base.(baseMover)
	if !some && !also && !v.renamed || !v.writesMain(c) || v.body.Deleting && c.finalizer.Remove {
		return nil
	}
	if some {
		if err := records.Move(ctx, v.stored, &c.notes, append(v.Handlers.IDs(), progress.HandlingID)); err != nil {
			return fmt.Errorf("move the progress from its former place: %w", err)
		}
	}
	if v.body.Deleting {
		return nil
	}
	if also {
		if err := base.Move(ctx, v.stored, &c.notes); err != nil {
			return fmt.Errorf("move the last-handled configuration from its former place: %w", err)
		}
	}
	c.finalizer.Add = c.finalizer.Add || v.renamed && !c.finalizer.Remove
	return nil
}

// writesMain reports whether a change writes to the object outside of its status.
func (v *view) writesMain(c *change) bool {
	asked := c.asked()
	switch {
	case c.finalizer.Add || c.finalizer.Remove:
		return true
	case !v.Resource.HasStatus():
		return !asked.Empty() || !c.notes.Empty()
	}
	main, _ := asked.Split()
	notes, _ := c.notes.Split()
	return len(main)+len(notes) > 0
}

// finalizers returns the name of the finalizer, and its former names.
func (p *Processor) finalizers() []string {
	return append([]string{p.Config.Finalizer}, p.Config.Former...)
}

// finalizer returns the name of the finalizer that the object has.
func (v *view) finalizer() string {
	for _, f := range v.finalizers() {
		if slices.Contains(v.body.Finalizers(), f) {
			return f
		}
	}
	return v.Config.Finalizer
}
