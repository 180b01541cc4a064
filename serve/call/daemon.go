package call

import (
	"context"
	"errors"
)

// DefaultDaemons is the default limit of the programs of a daemon handler. With a child process
// each, they fit the memory of a small pod, and a limit of 100 processes.
const DefaultDaemons = 32

// Daemon runs a program for each object, as long as the context of the call is valid. There is
// no time limit. The number of programs is limited; further ones wait. Namespaces share
// the programs: one can have three quarters of them. If all are in use, a namespace
// that has few of them gets one of the namespace that has the most: its newest program is
// stopped, and waits. It is started again with the same input when it gets its turn. None of
// this is a failure, and a call does not end because of it.
type Daemon struct {
	options Options
	seats   *seats
	full    notice
}

// NewDaemon returns a caller of daemons.
func NewDaemon(o Options) *Daemon {
	n := o.Call.Processes
	if n == 0 {
		n = DefaultDaemons
	}
	return &Daemon{options: o, seats: newSeats(n)}
}

// Close does nothing: no process outlives its call.
func (*Daemon) Close() {}

// Call runs the program until it exits or ctx ends.
func (d *Daemon) Call(ctx context.Context, r *Request) (Output, error) {
	wait := func() {
		if d.full.due() {
			r.Log.Warn("The daemons of a handler have reached their limit. Others wait until programs end. You can raise processes of the handler.",
				"namespace", r.Namespace, "limit", d.seats.size, "namespaceLimit", d.seats.most)
		}
	}
	for {
		inside, leave, err := d.seats.take(ctx, r.Namespace, noticeInterval, wait)
		if err != nil {
			return Output{}, err
		}
		out, err := d.options.once(inside, r)
		stopped := errors.Is(context.Cause(inside), errYield)
		leave()
		if err == nil || !stopped || ctx.Err() != nil {
			return out, err
		}
		r.Log.Info("The daemon is stopped, because other namespaces wait for a program. It is started again when one is free.")
	}
}
