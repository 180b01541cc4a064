package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/lease"
)

// Election configures the leader election among replicas.
type Election struct {
	Enabled         bool
	Namespace, Name string // of the lease; an empty namespace means that of the login
	Identity        string // "" means a generated one
	Duration        time.Duration
	RenewDeadline   time.Duration
	RetryPeriod     time.Duration
}

// Requests in flight that are reserved for framework tasks, which must not queue
// behind the requests of handlers. Without them, a busy operator with a slow API
// server would lose its lease, or its peering record would expire.
const (
	forLease     = 2 // one at a time, plus one that got no response
	forPeering   = 8 // all peerings together
	forDiscovery = 8
	forLookups   = 8 // of resources that are not known
	forProbes    = 1

	forReviewHandlers = 32 // all requests of the handlers of reviews
)

// lateHandlers is the time after which the log says that handlers outlive the lease.
const lateHandlers = 10 * time.Second

// candidate creates the elector of this replica and connects it to the write gate.
// nil means that leader election is disabled.
func (op *operator) candidate(ctx context.Context) (*lease.Elector, error) {
	if !op.Election.Enabled {
		return nil, nil
	}
	elector, err := lease.New(lease.Config{
		Client:    op.client.Ungated().Reserved(forLease),
		Namespace: op.leaseNamespace(), Name: op.Election.Name,
		Identity: identify(ctx, cmp.Or(op.Election.Identity, op.Peering.Identity)),
		Duration: op.Election.Duration, RenewDeadline: op.Election.RenewDeadline, RetryPeriod: op.Election.RetryPeriod,
		Log: op.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	op.writeGate.Follow(elector)
	return elector, nil
}

func (op *operator) leaseNamespace() string {
	return cmp.Or(op.Election.Namespace, op.Posting.Namespace, "default")
}

// elect takes part in the leader election until the context is done. It releases the
// lease after the operator has stopped.
func (op *operator) elect(ctx, work context.Context, elector *lease.Elector) {
	if elector == nil {
		return
	}
	elector.Run(ctx, func(term context.Context) {
		op.controllers.Lead(term, work)
		<-term.Done()
		if _, lost := errors.AsType[*lease.LostError](context.Cause(term)); lost {
			op.standDown(work)
			return
		}
		op.leaveInTime()
	})
}

// leaveInTime waits until the operator has stopped; the elector renews the lease
// meanwhile. If the lease is lost nevertheless, the remaining handlers are canceled at
// once, because another replica may be the leader.
func (op *operator) leaveInTime() {
	for {
		until, err := op.writeGate.Ask()
		if err != nil {
			close(op.evicted)
			<-op.stopped
			return
		}
		select {
		case <-op.stopped:
			return
		case <-time.After(time.Until(until)):
		}
	}
}

// standDown stops all work at once after the loss of the lease, because another replica
// may be the leader. It returns when all handlers and daemons have ended.
func (op *operator) standDown(work context.Context) {
	op.controllers.StandDown(work)
	late := time.AfterFunc(lateHandlers, func() {
		op.Log.Warn("The lease is lost, but some handlers have not returned; this replica is not a candidate until they do.")
	})
	defer late.Stop()
	select {
	case <-op.controllers.Retired():
	case <-op.stopped: // the operator stopped and abandoned the rest
	}
}

// entrance returns the check that every call of a handler, daemon or timer passes: the
// limit of concurrent change and event handlers, and the write gate. The write gate
// matters for a leader whose process was suspended: its lease is expired when it
// continues, and queued calls must not start.
func (op *operator) entrance() *execute.Entrance {
	limited := append(op.Handlers.Of(handler.Changes), op.Handlers.Of(handler.Events)...)
	e := execute.NewEntrance(limited, op.MaxWorkers)
	if op.Election.Enabled {
		e.Open = func() bool {
			_, err := op.writeGate.Ask()
			return err == nil
		}
	}
	return e
}
