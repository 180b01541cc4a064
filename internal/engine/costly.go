package engine

import (
	"time"

	"gopf.dev/gopf/internal/object"
)

// A turn of a large object takes much more memory than the object has bytes. These
// limits are for all costly turns of the operator together. Turns of ordinary objects
// do not count, and overtake them.
const (
	// costlyTurns is the memory that costly turns may take at the same time, as
	// estimated. One of the largest objects fits at a time.
	costlyTurns = 96 << 20
	// costlyTurn is the least that a costly turn takes.
	costlyTurn = 2 << 20
	// costlyBacklog is the number of bytes of costly objects of one resource that may
	// wait before its stream does.
	costlyBacklog = 24 << 20
	// costlyPatience is the time after which one more costly turn begins if none has
	// ended: handlers may take any time.
	costlyPatience = 10 * time.Second
	// copies is how often a turn decodes an object: its essence, the base, and the
	// old and the new object for a handler.
	copies = 4
)

// costOf estimates the memory of a turn of an object; 0 if it is not costly.
func costOf(b *object.Body) int {
	if cost := copies * b.Memory(); cost >= costlyTurn {
		return cost
	}
	return 0
}

// cost is [costOf] for an entry. Without an event, the object is as large as in its
// last turn.
func (r *resource) cost(key string, e entry) int {
	if e.event != nil {
		return costOf(e.event.Body)
	}
	if cost, ok := r.costly.Load(key); ok {
		return cost.(int)
	}
	return 0
}

// noteCost remembers the cost of turns of an object.
func (r *resource) noteCost(key string, e entry) {
	if e.event == nil {
		return
	}
	if cost := costOf(e.event.Body); cost > 0 {
		r.costly.Store(key, cost)
	} else {
		r.costly.Delete(key)
	}
}
