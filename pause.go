package gopf

import (
	"sync"

	"gopf.dev/gopf/internal/engine"
)

// freezer is the state of [Operator.Pause], which may be called before the operator
// runs.
type freezer struct {
	mu      sync.Mutex
	frozen  bool
	why     string
	running engine.Handle // nil before the operator runs
}

// frozen is the key of the pause by [Operator.Pause].
const frozen = "the program"

// Pause pauses the operator until [Operator.Unpause] is called. It handles no objects,
// and its daemons and timers are stopped with [ErrPaused]. Running handlers finish, and
// changes made during the pause are handled afterwards. Admission reviews are still
// answered.
//
// Pause may be called from any goroutine, any number of times. Before [Operator.Run],
// it makes the operator start paused. It is not persistent: after a restart, the
// operator works again. why is shown in logs and health responses.
func (op *Operator) Pause(why string) {
	op.freezer.mu.Lock()
	defer op.freezer.mu.Unlock()
	op.freezer.frozen, op.freezer.why = true, why
	if op.freezer.running != nil {
		op.freezer.running.Pause(frozen, why)
	}
}

// Unpause ends the pause of [Operator.Pause]. Pauses for other reasons, such as another
// operator in the peering, continue. Without a pause, it does nothing.
func (op *Operator) Unpause() {
	op.freezer.mu.Lock()
	defer op.freezer.mu.Unlock()
	op.freezer.frozen = false
	if op.freezer.running != nil {
		op.freezer.running.Resume(frozen)
	}
}

// begin records the running operator, and pauses it if Freeze was called before.
func (f *freezer) begin(running engine.Handle) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.running = running
	if f.frozen {
		running.Pause(frozen, f.why)
	}
}
