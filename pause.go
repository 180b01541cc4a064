package gopf

import (
	"sync"

	"gopf.dev/gopf/internal/engine"
)

// pauser is the state of [Operator.Pause], which may be called before the operator
// runs.
type pauser struct {
	mu      sync.Mutex
	paused  bool
	why     string
	running engine.Handle // nil before the operator runs
}

// byProgram is the key of the pause by [Operator.Pause].
const byProgram = "the program"

// Pause pauses the operator until [Operator.Unpause] is called. It handles no objects,
// and its daemons and timers are stopped with [ErrPaused]. Running handlers finish, and
// changes made during the pause are handled afterwards. Admission reviews are still
// answered.
//
// Pause may be called from any goroutine, any number of times. Before [Operator.Run],
// it makes the operator start paused. It is not persistent: after a restart, the
// operator works again. why is shown in logs and health responses.
func (op *Operator) Pause(why string) {
	op.pauser.mu.Lock()
	defer op.pauser.mu.Unlock()
	op.pauser.paused, op.pauser.why = true, why
	if op.pauser.running != nil {
		op.pauser.running.Pause(byProgram, why)
	}
}

// Unpause ends the pause of [Operator.Pause]. Pauses for other reasons, such as another
// operator in the peering, continue. Without a pause, it does nothing.
func (op *Operator) Unpause() {
	op.pauser.mu.Lock()
	defer op.pauser.mu.Unlock()
	op.pauser.paused = false
	if op.pauser.running != nil {
		op.pauser.running.Resume(byProgram)
	}
}

// begin records the running operator, and pauses it if Pause was called before.
func (p *pauser) begin(running engine.Handle) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.running = running
	if p.paused {
		running.Pause(byProgram, p.why)
	}
}
