package process

// result has the facts about a pass that decide how the turn continues after its write.
type result struct {
	stale       bool // the response had no body: the watch event will show the object
	ended       bool // the object has no finalizers left and is gone
	resent      bool // the change was from an earlier turn
	stopping    bool // the operator is stopping or paused
	progressed  bool // the write changed the object
	acted       bool // handlers were called, or stored changes were sent
	forgotten   bool // handlers are due again, but the cluster did not keep their records
	interrupted bool // the operator stopped before all handlers were called
	due         delay
}

// step is the continuation of a turn after a write.
type step int

const (
	thenHandleState    step = iota // handle the state that the write returned
	thenHandleOccasion             // the same, for the occasion of the turn
	thenWait                       // end the turn; handlers may be due later
	thenStop                       // end the turn, because the operator stops
	thenBackOff                    // end the turn; continuing at once would loop
	thenAwaitEvent                 // end the turn; the watch event starts the next one
	thenEnd                        // the object is gone
)

// next decides how a turn continues. The first case that applies counts: without a known
// state there is nothing to handle, and an earlier change must not delay the occasion of
// this turn.
func next(r result) step {
	dueNow := r.due.Set && r.due.Is == 0
	switch {
	case r.stale:
		return thenAwaitEvent
	case r.ended:
		return thenEnd
	case r.resent && !r.stopping:
		return thenHandleOccasion
	case r.forgotten:
		return thenBackOff // the handlers would be called again and again
	case dueNow && !r.progressed && !r.acted:
		return thenBackOff // nothing happened although something is due
	case r.interrupted || r.stopping:
		return thenStop
	case !r.progressed && !dueNow:
		return thenWait
	}
	return thenHandleState
}
