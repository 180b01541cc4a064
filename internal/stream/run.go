package stream

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// run is the state of one Run.
type run struct {
	*Stream
	deliver func(Event)
	health  health
	pause   backoff

	version string // where to resume; "" is to list first
	strikes int    // trouble in a row at this version

	pagesOnly bool // the server cannot stream lists
	failed    int  // streamed lists in a row that failed
	unpaged   bool // pages expired: ask for all at once

	unknown map[string]bool // types of events that were warned of
}

// end is how a turn ended.
type end struct {
	err       error
	opened    bool // there was a watch
	streaming bool // it ended within a streamed list
	progress  bool // there was something new, or the watch stayed for a while
}

// maxStreamedLists is how many streamed lists may fail in a row before one in
// pages is made.
const maxStreamedLists = 2

// turn lists, if it must, and watches until that ends.
func (r *run) turn(ctx context.Context) end {
	o := kube.WatchOptions{ResourceVersion: r.version, Selector: r.Selector, ServerTimeout: r.ServerTimeout}
	var list *listing
	if r.version == "" {
		r.health.listing()
		list = newListing(r.Known)
		o.SendInitialEvents = !r.pagesOnly && r.failed < maxStreamedLists
	}
	listed := false
	if list != nil && !o.SendInitialEvents {
		if err := r.listPages(ctx, list); err != nil {
			return end{err: err}
		}
		o.ResourceVersion, list, listed = r.version, nil, true
	}
	w, err := r.client.Watch(ctx, r.Info, r.Namespace, o)
	if err != nil {
		return end{err: err, streaming: o.SendInitialEvents, progress: listed}
	}
	defer w.Close()
	if list == nil {
		r.health.watching()
	}
	before, started := r.version, time.Now()
	err = r.follow(ctx, w, &list)
	return end{
		err:       err,
		opened:    true,
		streaming: list != nil,
		progress:  listed || r.version != before || list == nil && time.Since(started) >= r.MaxBackoff,
	}
}

// listPages lists all objects in pages.
func (r *run) listPages(ctx context.Context, list *listing) error {
	o := kube.ListOptions{Selector: r.Selector}
	if r.unpaged {
		o.Limit = -1
	}
	version, err := r.client.List(ctx, r.Info, r.Namespace, o, func(b *object.Body) error {
		r.deliverListed(list, b)
		return ctx.Err()
	})
	if err != nil {
		// The server keeps the state behind the pages for some minutes only,
		// which was not enough for us.
		r.unpaged = apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		return err
	}
	r.finishList(list, version)
	return nil
}

func (r *run) deliverListed(list *listing, b *object.Body) {
	if former, replaced := list.saw(b.Identity); replaced {
		r.deliver(r.tombstone(former))
	}
	r.deliver(Event{Type: Listed, Body: b})
}

func (r *run) finishList(list *listing, version string) {
	for id := range list.missing() {
		r.deliver(r.tombstone(id))
	}
	r.deliver(Event{Type: Synced})
	r.version, r.failed, r.unpaged = version, 0, false
}

// follow delivers the events of a watch until it ends. While the list is not
// nil, the initial events are still coming.
func (r *run) follow(ctx context.Context, w *kube.Watch, list **listing) error {
	guard := r.startGuard(ctx, w)
	defer guard.stop()
	for {
		guard.waiting(r.version)
		e, err := w.Next()
		guard.busy()
		if err != nil {
			var malformed *kube.MalformedError
			if errors.As(err, &malformed) {
				err = trouble{err}
			}
			return err
		}
		switch e.Type {
		case kube.Added, kube.Modified, kube.Deleted:
			r.take(e, *list)
		case kube.Bookmark:
			if *list != nil && e.InitialEnd {
				r.finishList(*list, e.Body.ResourceVersion)
				*list = nil
				r.health.watching()
			}
		case kube.Error:
			return trouble{fmt.Errorf("watch %s: the server sent an error: %w", r.Info, &apierrors.StatusError{ErrStatus: *e.Status})}
		default:
			r.warnOfType(e.Type)
			continue
		}
		// The initial events come in no order of versions, so that none of
		// them is a point to resume at.
		if *list == nil && e.Body.ResourceVersion != "" {
			r.version = e.Body.ResourceVersion
		}
	}
}

// take delivers an event about an object.
func (r *run) take(e kube.Event, list *listing) {
	b := e.Body.WithType(r.Info.APIVersion(), r.Info.Kind)
	switch {
	case e.Type == kube.Added && list != nil:
		r.deliverListed(list, b)
		return
	case e.Type == kube.Deleted && list != nil:
		list.gone(b.Identity)
	}
	r.deliver(Event{Type: typeOf(e.Type), Body: b})
}

func typeOf(t string) Type {
	switch t {
	case kube.Added:
		return Added
	case kube.Modified:
		return Modified
	}
	return Deleted
}

func (r *run) warnOfType(t string) {
	if r.unknown[t] {
		return
	}
	if r.unknown == nil {
		r.unknown = map[string]bool{}
	}
	r.unknown[t] = true
	r.Log.Warn("Ignoring events of an unknown type.", "type", t)
}

// recover decides how to go on after a turn, and pauses. Its only error is
// that of ctx.
func (r *run) recover(ctx context.Context, e end) error {
	var odd trouble
	isTrouble := errors.As(e.err, &odd)
	if e.progress {
		r.pause.reset()
		r.health.progressed()
		r.strikes = 0
	}
	if isTrouble {
		r.strikes++
	}
	if e.streaming && (e.opened || serverFailed(e.err)) {
		r.failed++
	}
	if errors.Is(e.err, errNoInitialEnd) {
		r.failed = maxStreamedLists // no sense in waiting for that long again
	}
	r.report(e, isTrouble)

	switch judge(e.err, e.streaming, r.strikes) {
	case listPages:
		r.pagesOnly = true
		return nil
	case relist:
		r.version, r.strikes = "", 0
	case resume:
		if errors.Is(e.err, errInactive) && r.rewound(ctx) {
			r.version = ""
		}
	}
	pause := r.pause.next()
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
	case isTrouble || errors.Is(e.err, errDead):
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
