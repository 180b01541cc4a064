package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"gopf.dev/gopf/internal/controller"
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
	forProbes    = 1
)

// candidate creates the elector of this replica and connects it to the write gate.
// nil means that leader election is disabled.
func (s *server) candidate(ctx context.Context) (*lease.Elector, error) {
	if !s.Election.Enabled {
		return nil, nil
	}
	elector, err := lease.New(lease.Config{
		Client:    s.client.Ungated().Reserved(forLease),
		Namespace: s.leaseNamespace(), Name: s.Election.Name,
		Identity: identify(ctx, cmp.Or(s.Election.Identity, s.Peering.Identity)),
		Duration: s.Election.Duration, RenewDeadline: s.Election.RenewDeadline, RetryPeriod: s.Election.RetryPeriod,
		Log: s.Log,
	})
	if err != nil {
		return nil, fmt.Errorf("leader election: %w", err)
	}
	s.writeGate.Follow(elector)
	return elector, nil
}

func (s *server) leaseNamespace() string {
	return cmp.Or(s.Election.Namespace, s.Posting.Namespace, "default")
}

// elect takes part in the leader election until the context is done. It releases the
// lease after the operator has stopped.
func (s *server) elect(ctx, work context.Context, elector *lease.Elector) {
	if elector == nil {
		return
	}
	elector.Run(ctx, func(term context.Context) {
		s.lead(term, work)
		<-term.Done()
		if _, lost := errors.AsType[*lease.LostError](context.Cause(term)); lost {
			s.standDown(work)
			return
		}
		s.leaveInTime()
	})
}

// leaveInTime waits until the operator has stopped; the elector renews the lease
// meanwhile. If the lease is lost nevertheless, the remaining handlers are canceled at
// once, because another replica may be the leader.
func (s *server) leaveInTime() {
	for {
		until, err := s.writeGate.Ask()
		if err != nil {
			close(s.evicted)
			<-s.stopped
			return
		}
		select {
		case <-s.stopped:
			return
		case <-time.After(time.Until(until)):
		}
	}
}

// lead starts the work of a new leader, as soon as the indices are filled. It waits for
// that until the term ends.
func (s *server) lead(term, work context.Context) {
	s.mu.Lock()
	s.standby = false
	s.mu.Unlock()
	s.openBarrier(term, work)
}

// standDown stops all work at once after the loss of the lease, because another replica
// may be the leader. It returns when all handlers and daemons have ended. From then on,
// the replica only keeps its indices filled. The memories of objects are dropped: a
// later term starts like a new process.
func (s *server) standDown(work context.Context) {
	s.mu.Lock()
	s.standby = true
	if len(s.Indices) > 0 {
		s.barrier.Close(resources) // the new controllers fill them again
	}
	for gvr, c := range s.controllers {
		delete(s.controllers, gvr)
		c.Cancel()
		s.retire(work, c)
	}
	s.served.Store(new([]*controller.Controller))
	if len(s.leaving) == 0 { // otherwise the last retiring controller calls arrange
		s.arrange(work)
	}
	s.mu.Unlock()
	late := time.AfterFunc(reminding, func() {
		s.Log.Warn("The lease is lost, but some handlers have not returned; this replica is not a candidate until they do.")
	})
	defer late.Stop()
	select {
	case <-s.retiring.Empty():
	case <-s.stopped: // the operator stopped and abandoned the rest
	}
}

// entrance returns the check that every call of a handler, daemon or timer passes: the
// limit of concurrent change and event handlers, and the write gate. The write gate
// matters for a leader whose process was suspended: its lease is expired when it
// continues, and queued calls must not start.
func (s *server) entrance() *execute.Entrance {
	limited := append(s.Handlers.Of(handler.Changes), s.Handlers.Of(handler.Events)...)
	e := execute.NewEntrance(limited, s.MaxWorkers)
	if s.Election.Enabled {
		e.Open = func() bool {
			_, err := s.writeGate.Ask()
			return err == nil
		}
	}
	return e
}
