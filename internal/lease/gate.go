package lease

import (
	"errors"
	"sync/atomic"
	"time"
)

// ErrStandby is the error of writes by a replica that is not the leader.
var ErrStandby = errors.New("another replica holds the lease")

// Gate is the write gate of leader election. It is open while this replica is the
// leader. The zero value is closed.
type Gate struct{ elector atomic.Pointer[Elector] }

// Ask returns the time at which the current lease expires; a write must end before. It
// returns [ErrStandby] if this replica is not the leader.
func (g *Gate) Ask() (until time.Time, err error) {
	if elector := g.elector.Load(); elector != nil {
		until = elector.Until()
	}
	if until.IsZero() {
		return until, ErrStandby
	}
	return until, nil
}

// Follow connects the gate to an elector.
func (g *Gate) Follow(e *Elector) { g.elector.Store(e) }
