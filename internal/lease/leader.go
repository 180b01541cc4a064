package lease

import (
	"context"
	"errors"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
)

// releaseLimit limits the time for releasing the lease.
const releaseLimit = 5 * time.Second

// serve runs lead while this replica holds the lease. It reports whether Run must end.
func (e *Elector) serve(ctx context.Context, lead func(context.Context)) (over bool) {
	work, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	done := make(chan struct{})
	go func() {
		defer close(done)
		lead(work)
	}()
	// The work may need the lease for some time after ctx ends.
	lost := e.keep(context.WithoutCancel(ctx), done)
	if lost == nil {
		return true
	}
	e.Log.Warn("The lease is lost; this replica stops its work.", "reason", lost)
	cancel(lost)
	<-done
	return ctx.Err() != nil
}

// keep renews the lease until the work is done. It returns an error if the lease is
// lost; this replica must then stop writing.
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

// renew writes one renewal. It repeats the write if another client changed the Lease,
// or if the response was lost.
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
			e.leads(sent) // only the response was lost
			return false, nil
		case !r.holds(e.Identity, e.acquired):
			return true, nil
		}
	}
	return false, err
}

// maxRounds limits the writes of one renewal without a pause.
const maxRounds = 3

// settled reports whether reading the lease can resolve the error.
func settled(err error) bool {
	var unknown *kube.UnknownOutcomeError
	return errors.As(err, &unknown) || apierrors.IsConflict(err) || apierrors.IsNotFound(err) || apierrors.IsAlreadyExists(err)
}

// leads records that this replica holds the lease as of the given time, when the
// request was sent.
func (e *Elector) leads(asked time.Time) {
	until := asked.Add(e.RenewDeadline)
	e.told.Reset()
	if e.until.Swap(&until) == nil {
		e.Log.Info("This replica leads.")
	}
}

// release releases the lease if this replica holds it or may hold it.
func (e *Elector) release(ctx context.Context) {
	e.until.Store(nil)
	ctx, cancel := context.WithTimeout(ctx, releaseLimit)
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
				e.Log.Info("Released the lease.")
				return
			}
		}
		e.unsure = true // another client may have changed it
		pause := e.client.Jitter().Shorten(min(e.RetryPeriod, time.Second), jitter.Slight)
		if apierrors.IsConflict(err) {
			pause = 0
		}
		if backoff.Sleep(ctx, pause) != nil {
			e.Log.Warn("Cannot release the lease; other replicas must wait until it expires.", "error", err)
			return
		}
	}
}
