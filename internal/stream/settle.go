package stream

import (
	"context"
	"errors"
	"io"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// settle decides how to go on after a turn, and pauses. Its only error is
// that of ctx.
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
		// There is no sense in waiting for that long again. Servers cut off those who
		// read slowly, as we do when there is a lot to do about a list; pages are read
		// at any speed.
		r.failed = maxStreamedLists
	}
	r.report(e, isTrouble)

	next := judge(e.err, e.streaming, r.strikes)
	if next == listPages {
		r.pagesOnly = true
		return nil
	}
	pause := r.pause.next()
	switch next {
	case relist:
		// Lists are dear: pauses between them grow although they succeed.
		pause = max(pause, r.relists.next())
		r.version, r.strikes = "", 0
	case resume:
		if errors.Is(e.err, errInactive) && r.rewound(ctx) {
			r.version = ""
		}
	}
	if s, ok := kube.Refused(e.err); ok && s.Details != nil {
		pause = max(pause, min(time.Duration(s.Details.RetryAfterSeconds)*time.Second, r.MaxBackoff))
	}
	return sleep(ctx, pause)
}

// report makes an end visible, unless it is a usual one.
func (r *run) report(e end, isTrouble bool) {
	switch {
	case !e.opened && judge(e.err, e.streaming, 0) == listPages:
		r.Log.Debug("The server does not stream lists; listing in pages.", "error", e.err)
	case !e.opened || e.streaming:
		r.health.failing(e.err)
	case isTrouble || errors.Is(e.err, errDead) || errors.Is(e.err, errUnanswered):
		r.health.odd(e.err)
	case errors.Is(e.err, io.EOF):
		r.Log.Debug("The server has ended the watch; resuming.")
	default:
		r.Log.Debug("The watch has ended; resuming.", "error", e.err)
	}
}

// rewound tells whether the server is behind us, as after a restore of its
// data from a backup: it would be silent until it has come to our version.
func (r *run) rewound(ctx context.Context) bool {
	now, err := r.client.List(ctx, r.Info, r.Namespace, kube.ListOptions{Selector: r.Selector, Max: 1}, func(*object.Body) error { return nil })
	if err != nil {
		return false
	}
	theirs, ok1 := object.Identity{ResourceVersion: now}.Version()
	ours, ok2 := object.Identity{ResourceVersion: r.version}.Version()
	if !ok1 || !ok2 || theirs >= ours {
		return false
	}
	r.Log.Warn("The server has lost versions that were seen already; listing again.", "seen", ours, "now", theirs)
	return true
}

func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
