package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// settle decides how to continue after a turn, and pauses. It returns an error only if
// ctx ends.
func (r *run) settle(ctx context.Context, e end) error {
	var odd trouble
	isTrouble := errors.As(e.err, &odd)
	if e.progress {
		r.pause.reset()
		r.health.progressed()
		r.strikes, r.torn = 0, 0
	}
	if e.beyond {
		r.relists.reset()
	}
	if errors.Is(e.err, kube.ErrReplaced) {
		r.Log.Debug("The credentials were replaced; resuming.")
		return nil // nothing has failed
	}
	if errors.Is(e.err, errRewound) {
		return nil // the next turn lists at once
	}
	if e.suspicious(r.ServerTimeout) {
		r.Shared.failed()
	}
	if !e.progress && !e.streaming && kube.Torn(e.err) {
		r.torn++
	}
	if r.torn >= maxTorn {
		isTrouble, r.strikes, r.torn = true, maxStrikes, 0
	} else if isTrouble {
		r.strikes++
	}
	if e.streaming && (e.opened || serverFailed(e.err)) {
		r.failed++
	}
	if errors.Is(e.err, errNoInitialEnd) || e.streaming && r.early.long() {
		// Do not wait that long again. Servers disconnect slow readers, and we read
		// slowly while a list causes a lot of work. Pages can be read at any speed.
		r.failed = maxStreamedLists
	}
	r.report(e, isTrouble)

	next := judge(e.err, e.streaming, r.strikes)
	if next == listPages {
		r.pagesOnly = true
		return nil
	}
	recovered := r.Shared.outageEnds()
	var pause time.Duration
	switch {
	case next == relist && versionIsUseless(e.err):
		// The server asked for a new list, so it is up and the reconnect backoff does
		// not apply. But lists are expensive, so the pauses between them grow even
		// though they succeed.
		r.pause.reset()
		pause = r.relists.next()
		r.version, r.strikes = "", 0
	case next == relist:
		pause = max(r.pause.next(), r.relists.next())
		r.version, r.strikes = "", 0
	default:
		pause = r.pause.next()
		if errors.Is(e.err, errInactive) {
			r.checkVersion(ctx)
		}
	}
	if asked := kube.RetryAfter(e.err); asked > 0 {
		return backoff.Sleep(ctx, max(pause, asked))
	}
	return r.wait(ctx, pause, recovered)
}

// wait pauses. The end of an outage cuts the pause short.
func (r *run) wait(ctx context.Context, pause time.Duration, recovered <-chan struct{}) error {
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-recovered:
		r.pause.reset()
		return backoff.Sleep(ctx, r.jitter(min(pause, maxRush)))
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// maxRush is the time over which all streams reconnect after an outage.
const maxRush = 500 * time.Millisecond

// usualLife is a lower bound for how long servers keep watches open. Their default is
// 30 minutes or more.
const usualLife = 20 * time.Minute

// suspicious reports whether the server may have been replaced by one with older data:
// a connection failed, or a watch ended early. asked is the timeout in the
// request; 0 means none.
func (e end) suspicious(asked time.Duration) bool {
	var odd trouble
	s, refused := kube.Refused(e.err)
	switch {
	case e.err == nil, errors.As(e.err, &odd), errors.Is(e.err, errOver), errors.Is(e.err, errDead), errors.Is(e.err, errNoInitialEnd),
		errors.Is(e.err, errInactive): // this stream checks the version itself
		return false
	case refused:
		return s.Code >= 500
	case errors.Is(e.err, io.EOF):
		return asked == 0 && e.lasted < usualLife
	}
	return true
}

// report logs the end of a turn and updates the status.
func (r *run) report(e end, isTrouble bool) {
	switch {
	case !e.opened && judge(e.err, e.streaming, 0) == listPages:
		r.Log.Debug("The server does not stream lists; listing in pages.", "error", e.err)
	case !e.opened || e.streaming:
		r.health.failing(e.err)
	case isTrouble || errors.Is(e.err, errDead) || errors.Is(e.err, errUnanswered):
		r.health.odd(e.err)
	case errors.Is(e.err, io.EOF):
		r.Log.Debug("The server closed the watch; resuming.")
	default:
		r.Log.Debug("The watch ended; resuming.", "error", e.err)
	}
}

// checkVersion checks whether the server is behind this stream. [Shared.Run] does that
// after connection failures, but only for one resource, and other resources may be in
// another storage.
func (r *run) checkVersion(ctx context.Context) {
	now, err := r.client.List(ctx, r.Info, r.Namespace, kube.ListOptions{Selector: r.Selector, Fields: r.Fields, Max: 1}, func(*object.Body) error { return nil })
	if err != nil {
		return
	}
	theirs, ok1 := object.Identity{ResourceVersion: now}.Version()
	ours, ok2 := object.Identity{ResourceVersion: r.version}.Version()
	if ok1 && ok2 && 0 < theirs && theirs < ours {
		r.Shared.wentBack(r.epoch, r.Log, theirs, ours)
	}
}
