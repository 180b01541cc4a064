package process

import (
	"context"
	"errors"
	"fmt"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// maxRelocations limits the attempts to move the state of an object that other clients
// keep changing.
const maxRelocations = 10

// Relocate moves the state of an object to the place where the storages keep it. It calls
// no handler. It reports whether there was something to move. With dryRun, it writes
// nothing.
//
// A move takes up to three requests. After each of them, one place has the complete state:
// a later call continues an interrupted move.
func (p *Processor) Relocate(ctx context.Context, body *object.Body, dryRun bool) (moved bool, err error) {
	for range maxRelocations {
		steps, err := p.relocation(ctx, body)
		if err != nil || steps == nil {
			return moved, err
		}
		moved = true
		if dryRun {
			return moved, nil
		}
		version := body.ResourceVersion
		applier := apply.Applier{API: p.API, Resource: p.Resource, Log: p.Logger(body), Jitter: p.Config.Jitter,
			Bound: func(now *object.Body) bool { return now.ResourceVersion == version }}
		after, err := applier.Apply(ctx, body, &patch.Patch{}, steps, apply.Finalizer{})
		switch {
		case errors.Is(err, apply.ErrGone):
			return moved, nil
		case err != nil && !errors.Is(err, apply.ErrSuperseded):
			return moved, err
		case err == nil && after.ResourceVersion == version:
			return moved, errors.New("the API server did not keep the state")
		}
		body = after
	}
	return moved, errors.New("other clients keep changing the object")
}

// relocation returns the next request of a move. nil means that nothing is left to move.
func (p *Processor) relocation(ctx context.Context, body *object.Body) (*patch.Patch, error) {
	o, notes, ids := stored{body}, &patch.Patch{}, p.recordIDs()
	if copies, ok := p.Config.Base.(storage.CopyDetector); ok && !p.Config.TrustCopies {
		if _, copied := copies.Copied(o); copied {
			return nil, nil // it will be handled as a new object
		}
	}
	state, ok := p.Config.Progress.(interface {
		statusMover
		progressMover
		FinishMove(o storage.Object, p storage.Patch)
	})
	base, also := p.Config.Base.(baseMover)
	if !ok || !also {
		return nil, errors.New("the storages keep no state in the status")
	}
	var err error
	if !state.InStatus() {
		if err = state.Move(ctx, o, notes, ids); err == nil {
			v := &view{Processor: p, body: body, stored: o}
			if v.base, _, err = p.Config.Base.Load(ctx, o); err == nil {
				c := &change{}
				c.notes.Merge(notes.Fields())
				err = v.moveBase(ctx, c, base)
				notes = &c.notes
			}
		}
	} else {
		for _, step := range []func() error{
			func() error { return p.moveRecords(ctx, state, o, notes, ids) },
			func() error { return state.DropAnnotations(ctx, o, notes, ids) },
			func() error { state.FinishMove(o, notes); return nil },
		} {
			if err = step(); err != nil || !notes.Empty() {
				break
			}
		}
	}
	if err != nil {
		return nil, fmt.Errorf("move the state: %w", err)
	}
	if notes.Empty() {
		return nil, nil
	}
	return notes, nil
}
