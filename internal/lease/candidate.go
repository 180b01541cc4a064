package lease

import (
	"context"
	"math"
	"sync"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/stream"
)

// acquire waits until this replica holds the lease, and returns false if ctx ends
// first. It waits for a request in flight even then, to know whether the lease must be
// released.
func (e *Elector) acquire(ctx, requests context.Context) bool {
	ctx, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	defer follower.Wait()
	defer stop()
	free := make(chan struct{}, 1)
	follower.Go(func() { e.follow(ctx, free) })
	for ctx.Err() == nil {
		if e.try(requests) {
			if ctx.Err() == nil {
				return true
			}
			break
		}
		pause := e.pause()
		if ok, at := e.seen.free(time.Now(), e.Duration); !ok {
			pause = min(pause, time.Until(at))
		}
		_ = backoff.SleepOrWake(ctx, pause, free) // the loop checks ctx
	}
	return false
}

// pause returns the retry period with jitter.
func (e *Elector) pause() time.Duration {
	return e.client.Jitter().Shorten(e.RetryPeriod, jitter.Slight)
}

// try reads the lease and takes it if it is free.
func (e *Elector) try(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, e.attempt())
	defer cancel()
	if err := e.read(ctx); err != nil {
		e.tell(ctx, err)
		return false
	}
	r := e.seen.record
	now := time.Now()
	mine := r.holds(e.Identity, e.acquired)
	if free, _ := e.seen.free(now, e.Duration); !free && !mine {
		e.unsure = false
		return false
	}
	next := record{holder: e.Identity, duration: e.Duration, acquired: timestamp(now), renewed: timestamp(now), transitions: r.transitions}
	switch {
	case mine:
		next.acquired = e.acquired // a term whose response we missed, or that we lost but no other replica took
	case e.seen.version != "" || r.holder != "":
		next.transitions = min(r.transitions, math.MaxInt32-1) + 1 // the API server refuses negative numbers
	}
	e.acquired = next.acquired
	if err := e.write(ctx, next); err != nil {
		e.tell(ctx, err)
		return false
	}
	e.leads(now)
	return true
}

// attempt limits one attempt, which leaves time for another one before the deadline.
func (e *Elector) attempt() time.Duration { return e.RenewDeadline / 2 }

// follow signals when the lease is released. It is only an optimization: if watching
// fails, the lease is read periodically.
func (e *Elector) follow(ctx context.Context, free chan<- struct{}) {
	c := stream.DefaultConfig(leases, e.Namespace)
	c.Log = quiet
	told := false
	c.Status = func(s stream.Status) {
		if s.State == stream.Failing && !told {
			told = true
			e.Log.Debug("Cannot watch the lease; it is read periodically instead, and a takeover is slightly slower.", "error", s.Err)
		}
	}
	_ = stream.New(e.client, c).Run(ctx, func(ev stream.Event) {
		if ev.Body == nil || ev.Body.Name != e.Name {
			return
		}
		if holder, _ := ev.Body.Lookup("spec", "holderIdentity"); ev.Type == kube.Deleted || holder == nil || holder == "" {
			select {
			case free <- struct{}{}:
			default:
			}
		}
	})
}
