package engine

import (
	"context"
	"maps"
	"slices"
)

// Pause stops the handling of objects until Resume is called for every requester (who).
// It closes the watches and stops daemons and timers. Running handlers finish, and
// delayed handlers stay delayed. Changes during the pause are detected afterwards,
// when the objects are listed again.
func (op *operator) Pause(who, why string) {
	op.mu.Lock()
	defer op.mu.Unlock()
	first := len(op.pauses) == 0
	op.pauses[who] = why
	if !first {
		return
	}
	op.Log.Info("Handling is paused.", "why", why)
	op.controllers.Pause()
}

// Resume ends the pause of one requester. It does nothing if there is no such pause.
// When no pause is left, followResuming restarts the watches.
func (op *operator) Resume(who string) {
	op.mu.Lock()
	defer op.mu.Unlock()
	if _, paused := op.pauses[who]; !paused {
		return
	}
	delete(op.pauses, who)
	if len(op.pauses) > 0 {
		return
	}
	op.controllers.Unpause()
	select {
	case <-op.stopping:
		return
	default:
	}
	op.Log.Info("Handling is resumed.")
	select {
	case op.resumed <- struct{}{}:
	default:
	}
}

// Pauses returns the sorted reasons of the current pauses.
func (op *operator) Pauses() []string {
	op.mu.Lock()
	defer op.mu.Unlock()
	return slices.Sorted(maps.Values(op.pauses))
}

// followResuming restarts the watches and daemons after each pause, until the context
// is done.
func (op *operator) followResuming(ctx, work context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-op.resumed:
			op.controllers.Resume(work)
		}
	}
}
