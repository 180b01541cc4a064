package gopf

import (
	"sync"

	"gopf.dev/gopf/internal/engine"
)

// freezer is whether the operator is to pause, also before it runs.
type freezer struct {
	mu      sync.Mutex
	frozen  bool
	why     string
	running engine.Handle // nil until it runs
}

// frozen is who asks for the pauses of [Operator.Freeze].
const frozen = "the program"

// Freeze makes the operator pause: it handles nothing, and its daemons and timers
// stop, until [Operator.Resume]. Handlers that are running finish. What happens
// to objects meanwhile is handled afterwards. Before Run, it makes the operator
// start with a pause. Why is for logs and health.
func (op *Operator) Freeze(why string) {
	op.freezer.mu.Lock()
	defer op.freezer.mu.Unlock()
	op.freezer.frozen, op.freezer.why = true, why
	if op.freezer.running != nil {
		op.freezer.running.Pause(frozen, why)
	}
}

// Resume ends the pause that was begun by [Operator.Freeze].
func (op *Operator) Resume() {
	op.freezer.mu.Lock()
	defer op.freezer.mu.Unlock()
	op.freezer.frozen = false
	if op.freezer.running != nil {
		op.freezer.running.Resume(frozen)
	}
}

// begin tells that the operator runs.
func (f *freezer) begin(running engine.Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = running
	if f.frozen {
		running.Pause(frozen, f.why)
	}
}
