package process

import (
	"context"
	"errors"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
	"gopf.dev/gopf/storage"
)

// Release removes everything that the operator has put on the object: its finalizer, its
// annotations, and its state in the status. Results of handlers stay. It calls no handler.
// It reports whether there was something to remove. With dryRun, it writes nothing. An
// object that is being deleted may end with it.
func (p *Processor) Release(ctx context.Context, body *object.Body, dryRun bool) (released bool, err error) {
	for range maxRelocations {
		marks, guarded := p.marks(body)
		if marks.Empty() && !guarded {
			return released, nil
		}
		released = true
		if dryRun {
			return released, nil
		}
		version := body.ResourceVersion
		applier := apply.Applier{API: p.API, Resource: p.Resource, Log: p.Logger(body), Jitter: p.Config.Jitter,
			Bound: func(now *object.Body) bool { return now.ResourceVersion == version }}
		f := apply.Finalizer{Name: p.Config.Finalizer, Former: p.Config.Former, Remove: guarded}
		after, err := applier.Apply(ctx, body, &patch.Patch{}, marks, f)
		switch {
		case errors.Is(err, apply.ErrGone):
			return released, nil
		case err != nil && !errors.Is(err, apply.ErrSuperseded):
			return released, err
		case after.Deleting && len(after.Finalizers()) == 0:
			return released, nil
		case err == nil && after.ResourceVersion == version:
			return released, errors.New("the API server did not remove the state of the operator")
		}
		body = after
	}
	return released, errors.New("other clients keep changing the object; the operator may still be running")
}

// marks returns the removal of the operator's annotations and of its state in the status.
// guarded reports whether the object has the finalizer.
func (p *Processor) marks(body *object.Body) (marks *patch.Patch, guarded bool) {
	marks = &patch.Patch{}
	prefixes := p.prefixes()
	for key := range body.Annotations() {
		if prefix, _, ok := strings.Cut(key, "/"); ok && slices.Contains(prefixes, prefix) {
			marks.Set(nil, "metadata", "annotations", key)
		}
	}
	for _, key := range p.statusKeys() {
		// A null is no state, and counts as removed, so no patch would be sent for it.
		if state, _ := body.Lookup("status", key); state != nil {
			marks.Set(nil, "status", key)
		}
	}
	return marks, p.Holds(body)
}

// Holds reports whether the object has a finalizer of the operator.
func (p *Processor) Holds(body *object.Body) bool {
	return slices.ContainsFunc(p.finalizers(), func(f string) bool { return slices.Contains(body.Finalizers(), f) })
}

// statusKeys returns the keys in the status that hold state of the operator.
func (p *Processor) statusKeys() (keys []string) {
	for _, one := range []any{p.Config.Progress, p.Config.Base} {
		if tracer, ok := one.(storage.Tracer); ok {
			traces, _ := tracer.Traces()
			keys = append(keys, traces.Keys...)
		}
		if in, ok := one.(interface{ State() *storage.StatusState }); ok {
			keys = append(keys, in.State().Keys()...)
		}
	}
	slices.Sort(keys)
	return slices.Compact(keys)
}
