package controller

import (
	"time"

	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/queue"
)

// A turn of a large object needs several times the memory of the object. These limits
// apply to all such costly turns of the operator together. Turns of ordinary objects
// do not count and may overtake them.
const (
	// costlyTurns limits the estimated memory of concurrent costly turns, in bytes. One
	// of the largest possible objects fits.
	costlyTurns = 96 << 20
	// costlyTurn is the estimate in bytes from which a turn is costly.
	costlyTurn = 2 << 20
	// costlyBacklog limits the queued bytes of costly objects of one resource. Its watch
	// waits at the limit.
	costlyBacklog = 24 << 20
	// costlyPatience is the time after which another costly turn starts although none
	// has ended. Otherwise slow handlers would block all large objects.
	costlyPatience = 10 * time.Second
	// copies is the number of decoded copies in a turn: the essence, the base, and the
	// old and the new object for a handler.
	copies = 4
)

// NewBudget returns the budget that all controllers of an operator share.
func NewBudget() *queue.Budget { return &queue.Budget{Size: costlyTurns, Patience: costlyPatience} }

// costOf estimates the memory of a turn of an object, in bytes. 0 means not costly.
func costOf(b *object.Body) int {
	if cost := copies * b.Memory(); cost >= costlyTurn {
		return cost
	}
	return 0
}

// cost returns [costOf] for an entry. Without an event, it is the cost of the object's
// last turn.
func (c *Controller) cost(key string, e entry) int {
	if e.event != nil {
		return costOf(e.event.Body)
	}
	if cost, ok := c.costly.Load(key); ok {
		return cost.(int)
	}
	return 0
}

// noteCost stores the cost of turns of an object, for entries without an event.
func (c *Controller) noteCost(key string, e entry) {
	if e.event == nil {
		return
	}
	if cost := costOf(e.event.Body); cost > 0 {
		c.costly.Store(key, cost)
	} else {
		c.costly.Delete(key)
	}
}
