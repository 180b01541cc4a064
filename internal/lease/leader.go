package lease

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// farewell is how long it may take to release the lease.
const farewell = 5 * time.Second

// serve has the work done while the lease is ours, and tells whether that was
// all.
func (e *Elector) serve(ctx context.Context, lead func(context.Context)) (over bool) {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(work)
	}()
	// The work may need the lease for some time after ctx is done.
	lost := e.keep(context.WithoutCancel(ctx), done)
	if lost == nil {
		return true
	}
	e.Log.Warn("The lease is lost: this replica stops its work.", "reason", lost)
	cancel(lost)
	<-done
	return ctx.Err() != nil
}

// keep renews the lease until the work is done. Its error says that the lease
// is lost; nobody may write any more then.
func (e *Elector) keep(ctx context.Context, done <-chan struct{}) *LostError {
	deadline := *e.until.Load()
	timer := time.NewTimer(e.pause())
	defer timer.Stop()
	for {
		select {
		case <-done:
			return nil
		case <-timer.C:
		}
		lost, err := e.renew(ctx, deadline)
		deadline = *e.until.Load()
		switch {
		case lost:
			e.until.Store(nil)
			return &LostError{Holder: e.seen.record.holder}
		case err != nil && !time.Now().Before(deadline):
			e.until.Store(nil)
			return &LostError{Err: err}
		case err != nil:
			e.tell(ctx, err)
		}
		timer.Reset(min(e.pause(), time.Until(deadline)))
	}
}

// renew makes one attempt to write that we are there. It is begun anew if
// somebody else has changed something of the lease, or if it was lost.
func (e *Elector) renew(ctx context.Context, deadline time.Time) (lost bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, min(e.attempt(), time.Until(deadline)))
	defer cancel()
	for range maxRounds {
		sent := time.Now()
		next := record{holder: e.Identity, duration: e.Duration, acquired: e.acquired, renewed: timestamp(sent), transitions: e.seen.record.transitions}
		if err = e.write(ctx, next); err == nil {
			e.leads(sent)
			return false, nil
		}
		if ctx.Err() != nil || !settled(err) {
			return false, err
		}
		if err := e.read(ctx); err != nil {
			return false, err
		}
		switch r := e.seen.record; {
		case r == next && e.seen.version != "":
			e.leads(sent) // only the answer was lost
			return false, nil
		case !r.holds(e.Identity, e.acquired):
			return true, nil
		}
	}
	return false, err
}

// maxRounds is how often a renewal is begun anew without a pause.
const maxRounds = 3

// settled tells errors after which reading the lease says more than waiting.
func settled(err error) bool {
	var unknown *kube.UnknownOutcomeError
	return errors.As(err, &unknown) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// leads takes note that the lease is ours as of a moment at which that was
// asked for.
func (e *Elector) leads(asked time.Time) {
	until := asked.Add(e.RenewDeadline)
	clear(e.told)
	if e.until.Swap(&until) == nil {
		e.Log.Info("This replica leads.")
	}
}

// release gives the lease up, if it is or may be ours.
func (e *Elector) release(ctx context.Context) {
	e.until.Store(nil)
	ctx, cancel := context.WithTimeout(ctx, farewell)
	defer cancel()
	for {
		var err error
		if e.unsure {
			err = e.read(ctx)
		}
		if err == nil {
			if !e.seen.record.holds(e.Identity, e.acquired) || e.seen.version == "" {
				return
			}
			if err = e.write(ctx, e.seen.record.released(timestamp(time.Now()))); err == nil {
				e.Log.Info("The lease is released.")
				return
			}
		}
		e.unsure = true // somebody may have changed something of it
		pause := e.client.Jitter().Shorten(min(e.RetryPeriod, time.Second), jitter.Slight)
		if apierrors.IsConflict(err) {
			pause = 0
		}
		select {
		case <-ctx.Done():
			e.Log.Warn("The lease cannot be released: the others must wait until it expires.", "error", err)
			return
		case <-time.After(pause):
		}
	}
}
