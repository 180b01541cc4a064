package process

import (
	"context"
	"maps"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// pauses returns the number of pauses so far.
func (p *Processor) pauses() uint32 {
	if p.Pauses == nil {
		return 0
	}
	return p.Pauses()
}

// bound returns the value of [apply.Applier.Bound] for a write of records. It is nil
// unless this is the first write since a pause of the operator. Another operator may
// have handled the object in the pause. Records that are based on an older state must
// not replace those of the other operator.
func (p *Processor) bound(ctx context.Context, m *Memory, c *change) func(now *object.Body) bool {
	if m.wroteIn == p.pauses() {
		return nil
	}
	return func(now *object.Body) bool {
		return now.ResourceVersion == c.from.ResourceVersion || p.sameRecords(ctx, c.from, now)
	}
}

// sameRecords reports whether both states have equal base, records and note. State that
// cannot be read counts as different.
func (p *Processor) sameRecords(ctx context.Context, a, b *object.Body) bool {
	oldA, knownA, errA := p.Config.Base.Load(ctx, stored{a})
	oldB, knownB, errB := p.Config.Base.Load(ctx, stored{b})
	if errA != nil || errB != nil || knownA != knownB || !diff.Equal(oldA, oldB) {
		return false
	}
	ids := append(p.Handlers.IDs(), progress.HandlingID)
	recordsA, errA := p.Config.Progress.Load(ctx, stored{a}, ids)
	recordsB, errB := p.Config.Progress.Load(ctx, stored{b}, ids)
	return errA == nil && errB == nil && maps.EqualFunc(recordsA, recordsB, storage.Record.Equal)
}

// supersede drops a change because another operator has handled the object meanwhile.
// The changes that handlers requested are sent with the next change.
func (p *Processor) supersede(m *Memory, now *object.Body, c *change) {
	p.Logger(now).Info("Another operator handled the object during the pause; its records are kept and those of this operator are dropped.")
	w := m.pend()
	w.unsent, w.refused, w.fresh = nil, nil, false
	p.postpone(now, w, c.parts)
}
