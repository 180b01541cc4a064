package process

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// ErrPausedObject means that the handlers of an object cannot be retried, because the
// object is paused.
var ErrPausedObject = errors.New("the object is paused; continue it first")

// Retry makes the delayed change handlers of the object due, by removing the delays from
// their records. Another process may run the operator: it sees the change. With again,
// handlers that have finished in the present handling are called once more. No ids mean
// all handlers; an id includes its sub-handlers. It returns the handlers that it has
// changed.
func (p *Processor) Retry(ctx context.Context, body *object.Body, ids []string, again bool) (changed []string, err error) {
	for range maxRelocations {
		if p.pauseOf(body) != nil {
			return nil, ErrPausedObject
		}
		notes, meant, err := p.hasten(ctx, body, ids, again)
		if err != nil || len(meant) == 0 {
			return nil, err
		}
		version := body.ResourceVersion
		applier := apply.Applier{API: p.API, Resource: p.Resource, Log: p.Logger(body), Jitter: p.Config.Jitter,
			Bound: func(now *object.Body) bool { return now.ResourceVersion == version }}
		after, err := applier.Apply(ctx, body, &patch.Patch{}, notes, apply.Finalizer{})
		if !errors.Is(err, apply.ErrSuperseded) {
			return meant, err
		}
		body = after // the operator has written: its records may be different now
	}
	return nil, errors.New("other clients keep changing the object")
}

// hasten returns the change of the records, and the handlers that it is about.
func (p *Processor) hasten(ctx context.Context, body *object.Body, ids []string, again bool) (*patch.Patch, []string, error) {
	o := stored{body}
	records, err := p.Config.Progress.Load(ctx, o, p.Handlers.IDs())
	if err = ignoreDamage(err); err != nil {
		return nil, nil, fmt.Errorf("load the progress: %w", err)
	}
	var subs []string
	for _, r := range records {
		subs = append(subs, r.Subrefs...)
	}
	slices.Sort(subs)
	subs = slices.Compact(subs) // forged records may name a sub-handler thousands of times
	more, err := p.Config.Progress.Load(ctx, o, subs)
	if err = ignoreDamage(err); err != nil {
		return nil, nil, fmt.Errorf("load the progress of sub-handlers: %w", err)
	}
	for id, r := range more {
		records[id] = r
	}
	changed := map[string]storage.Record{}
	var purge, meant []string
	for id, r := range records {
		isMeant := len(ids) == 0 || slices.ContainsFunc(ids, func(of string) bool { return within(id, of) || within(of, id) })
		switch {
		case !isMeant:
		case !r.Finished() && r.Delayed.After(time.Now()):
			r.Delayed, r.Delay = time.Time{}, 0
			changed[id] = r
			meant = append(meant, id)
		case r.Finished() && again:
			purge = append(purge, id)
			meant = append(meant, id)
		}
	}
	slices.Sort(meant)
	notes := &patch.Patch{}
	if err := p.Config.Progress.Save(ctx, o, notes, changed, purge); err != nil {
		return nil, nil, fmt.Errorf("save the progress: %w", err)
	}
	return notes, meant, nil
}

// ignoreDamage drops errors about malformed records, which count as absent.
func ignoreDamage(err error) error {
	if _, malformed := errors.AsType[*storage.MalformedError](err); malformed {
		return nil
	}
	return err
}
