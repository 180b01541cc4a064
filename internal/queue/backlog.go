package queue

import "sync/atomic"

// Backlog limits the entries that wait in several queues together, in addition to the limits of
// each; see [Config]. A nil Backlog has no limit.
type Backlog struct {
	CostlyLimit, SpareLimit int

	costly, kept atomic.Int64
}

// add notes that more waits, or less.
func (b *Backlog) add(costly, kept int) {
	if b != nil {
		b.costly.Add(int64(costly))
		b.kept.Add(int64(kept))
	}
}

// full reports whether the entries of costly turns fill their limit.
func (b *Backlog) full() bool { return b != nil && b.costly.Load() >= int64(b.CostlyLimit) }

// roomy reports whether shed entries may keep more.
func (b *Backlog) roomy() bool { return b == nil || b.kept.Load() < int64(b.SpareLimit) }
