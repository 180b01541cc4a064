package engine

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"gopf.dev/gopf/internal/lease"
)

// Election says how one of several replicas is chosen to work.
type Election struct {
	Enabled         bool
	Namespace, Name string // of the lease; the namespace is that of the login if it is empty
	Identity        string // "" for one that is made up
	Duration        time.Duration
	RenewDeadline   time.Duration
	RetryPeriod     time.Duration
}

// Requests that must not queue behind those of handlers have capacity of their
// own: this many may be in flight. Otherwise a busy operator with a slow API
// would lose its lease, or be taken for dead by its peers.
const (
	forLease     = 2 // one at a time, beside one that got no response
	forPeering   = 8 // all peerings together
	forDiscovery = 8
	forProbes    = 1
)

// ErrStandby is why nothing may be written by a replica that is not elected.
var ErrStandby = errors.New("another replica holds the lease")

// gate lets writes through as long as the replica is elected.
type gate struct{ elector atomic.Pointer[lease.Elector] }

// ask returns until when a write may take.
func (g *gate) ask() (until time.Time, err error) {
	if elector := g.elector.Load(); elector != nil {
		until = elector.Until()
	}
	if until.IsZero() {
		return until, ErrStandby
	}
	return until, nil
}

// candidate makes this replica one of those who can be elected; nil without an
// election.
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
		return nil, fmt.Errorf("take part in the election: %w", err)
	}
	s.gateOfWrites.elector.Store(elector)
	return elector, nil
}

func (s *server) leaseNamespace() string {
	return cmp.Or(s.Election.Namespace, s.Posting.Namespace, "default")
}

// elect takes part in the election until the context is done, and lets go of the
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

// leaveInTime waits until the operator has stopped. The lease is kept so long; if
// it is lost nevertheless, handlers have no more time: another replica may be at
// work.
func (s *server) leaveInTime() {
	for {
		until, err := s.gateOfWrites.ask()
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
