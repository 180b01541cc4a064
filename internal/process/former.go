package process

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/essence"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
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
	// statusMover is implemented by progress storages that keep the whole state in the
	// status and can find it in annotations.
	statusMover interface {
		InStatus() bool
		MoveToStatus(ctx context.Context, o storage.Object, p storage.Patch, ids []string) error
		DropAnnotations(ctx context.Context, o storage.Object, p storage.Patch, ids []string) error
		FromAnnotations(o storage.Object) bool
		State() *storage.StatusState
	}
)

// move adds the move of former state to a change. It does nothing if the change writes
// nothing outside of the status, or if the object ends with it. An object that is being
// deleted keeps its base: there may be no space for another one. It also keeps its
// finalizers until it is released, because the API server accepts no others.
func (v *view) move(ctx context.Context, c *change) error {
	if state, ok := v.Config.Progress.(statusMover); ok && state.InStatus() {
		return v.moveToStatus(ctx, c, state)
	}
	records, some := v.Config.Progress.(progressMover)
	base, also := v.Config.Base.(baseMover)
	if !some && !also && !v.renamed || !v.writesMain(c) || v.body.Deleting && c.finalizer.Remove {
		return nil
	}
	if some {
		if err := records.Move(ctx, v.stored, &c.notes, v.recordIDs()); err != nil {
			return fmt.Errorf("move the progress from its former place: %w", err)
		}
	}
	_, inStatus := v.Config.Progress.(statusMover) // the base must not stay behind in the status
	if v.body.Deleting && !inStatus {
		return nil
	}
	if also {
		if err := v.moveBase(ctx, c, base); err != nil {
			return fmt.Errorf("move the last-handled configuration from its former place: %w", err)
		}
	}
	c.finalizer.Add = c.finalizer.Add || v.renamed && !c.finalizer.Remove && !v.body.Deleting
	return nil
}

// moveBase adds the move of the base to a change. A base that is too large for its new
// place is moved as a digest.
func (v *view) moveBase(ctx context.Context, c *change, base baseMover) error {
	err := base.Move(ctx, v.stored, &c.notes)
	if _, large := errors.AsType[*storage.TooLargeError](err); !large || v.base == nil {
		return err
	}
	digest, err := essence.Digest(v.base)
	if err == nil {
		err = v.Config.Base.Save(ctx, v.stored, &c.notes, digest)
	}
	if err != nil {
		return err
	}
	return base.Move(ctx, v.stored, &c.notes)
}

// moveToStatus adds the move of the state from annotations to the status. State moves
// with a write of the status, in the same request. The annotations are removed later, by a
// write of the rest of the object: they are a second request, and a crash between the two
// must not lose the state. The state of another object is not moved.
func (v *view) moveToStatus(ctx context.Context, c *change, state statusMover) error {
	ids := v.recordIDs()
	_, results := c.asked().Split()
	_, notes := c.notes.Split()
	if len(results)+len(notes) > 0 && !v.copied {
		if err := v.moveRecords(ctx, state, v.stored, &c.notes, ids); err != nil {
			return fmt.Errorf("move the state to the status: %w", err)
		}
	}
	if !v.writesMain(c) || v.body.Deleting && c.finalizer.Remove {
		return nil
	}
	if err := state.DropAnnotations(ctx, v.stored, &c.notes, ids); err != nil {
		return fmt.Errorf("remove the state that was moved to the status: %w", err)
	}
	c.finalizer.Add = c.finalizer.Add || v.renamed && !c.finalizer.Remove && !v.body.Deleting
	return nil
}

// moveRecords adds the move of the state to the status to a patch. A note with unsent
// changes stays behind: the operator stores none in annotations, so another client has
// written them. In the status, they would count as those of the operator, and would be sent
// with its permissions.
func (p *Processor) moveRecords(ctx context.Context, state statusMover, o storage.Object, notes *patch.Patch, ids []string) error {
	if state.FromAnnotations(o) {
		records, err := p.Config.Progress.Load(ctx, o, []string{progress.HandlingID})
		if _, malformed := errors.AsType[*storage.MalformedError](err); err != nil && !malformed {
			return err
		}
		if record, noted := records[progress.HandlingID]; noted {
			path := append(storage.NewStatusProgress(state.State().Keys()[0]).Field, progress.HandlingID)
			note, _ := progress.DecodeNote(record, nil)
			if _, own := notes.Lookup(path...); !own && note != nil && len(note.Todo) > 0 {
				notes.Set(nil, path...)
			}
		}
	}
	return state.MoveToStatus(ctx, o, notes, ids)
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

// recordIDs returns the ids of all records that an object may have: those of handlers, the
// handling note and the inventories of children.
func (p *Processor) recordIDs() []string {
	ids := append(p.Handlers.IDs(), progress.HandlingID)
	if p.Reconcile == nil {
		return ids
	}
	for _, h := range p.Reconcile.Handlers {
		ids = append(ids, inventoryID(h.ID))
	}
	return append(ids, p.Reconcile.Handlers.IDs()...)
}

// moveWith adds the move of former state to a write of a reconcile handler. A write makes
// its place the one that holds the state, so the records of all handlers and the base must
// move with it.
func (p *Processor) moveWith(ctx context.Context, m *Memory, body *object.Body, asked, notes *patch.Patch, f apply.Finalizer) (*patch.Patch, apply.Finalizer, error) {
	v := &view{Processor: p, memory: m, body: body, stored: stored{body}, log: p.Logger(body)}
	v.renamed = slices.ContainsFunc(p.Config.Former, func(f string) bool { return slices.Contains(body.Finalizers(), f) })
	_, records := p.Config.Progress.(progressMover)
	_, base := p.Config.Base.(baseMover)
	if !records && !base && !v.renamed {
		return notes, f, nil
	}
	if v.copied = v.isCopy(); !v.copied {
		old, _, err := p.Config.Base.Load(ctx, v.stored)
		if err = v.ignoreMalformed(err); err != nil {
			return nil, f, fmt.Errorf("load the last-handled configuration: %w", err)
		}
		v.base = old
	}
	f.Name, f.Former = p.Config.Finalizer, p.Config.Former
	c := &change{finalizer: f, parts: []execute.Part{{}}}
	c.parts[0].Patch.Merge(asked.Fields())
	c.notes.Merge(notes.Fields())
	if err := v.move(ctx, c); err != nil {
		return nil, f, err
	}
	return &c.notes, c.finalizer, nil
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
