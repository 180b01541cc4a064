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

// bound returns what [apply.Applier.Bound] is for a write of records to the
// object: nil, unless it is the first write since a pause. Another operator may
// have handled the object in the pause. Records that were made of the state from
// before must not replace those of the other operator.
func (p *Processor) bound(ctx context.Context, m *Memory, c *change) func(now *object.Body) bool {
	if m.wroteIn == p.pauses() {
		return nil
	}
	return func(now *object.Body) bool {
		return now.ResourceVersion == c.from.ResourceVersion || p.sameRecords(ctx, c.from, now)
	}
}

// sameRecords reports whether the operator's records on both states of the
// object are the same: base, progress and handling note. Records that cannot be
// read count as different.
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

// supersede drops a change because another operator has handled the object
// meanwhile. What handlers asked for goes along with the next change.
func (p *Processor) supersede(m *Memory, now *object.Body, c *change) {
	p.Logger(now).Info("Another operator has handled the object in the pause: its records stay, and those of this operator are dropped.")
	w := m.pend()
	w.unsent, w.refused, w.fresh = nil, nil, false
	w.asked = append(w.asked, c.parts...)
}
