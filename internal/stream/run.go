package stream

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// run is the state of one call of Run.
type run struct {
	*Stream
	deliver func(Event) // unless the scope excludes the event
	admit   func(Event) // regardless of the scope
	health  health
	pause   pauses
	early   newcomers

	version string // where to resume; empty means list first
	mark    uint64 // Shared.Mark at the start of the last list
	floor   uint64 // highest version of the resource seen before that
	of      schema.GroupResource
	epoch   int    // see [Shared]
	restore bool   // the next list is authoritative
	listed  string // version of the last list
	strikes int    // troubles in a row at this version
	torn    int    // watches in a row that broke within the first event after version
	watched bool   // a watch was opened since the last list
	relists pauses

	pagesOnly bool // the server cannot stream lists
	failed    int  // failed streamed lists in a row
	unpaged   bool // pages expired: request everything at once

	unknown loglimit.Once[string] // event types

	// delivering has an entry while a watch event is delivered, or an added namespace is
	// listed. It is a lock; waiting for a mutex would stop virtual time in tests.
	delivering chan struct{}
}

// end describes the end of a turn.
type end struct {
	err       error
	opened    bool // a watch was open
	streaming bool // it ended within a streamed list
	progress  bool // the version advanced, or the watch stayed open for a while
	beyond    bool // same, but counted after the last list
	lasted    time.Duration
}

// maxStreamedLists is the number of failed streamed lists in a row after which pages
// are used.
const maxStreamedLists = 2

// turn lists if necessary, and watches until the watch ends.
func (r *run) turn(ctx context.Context) end {
	listed := false
	if epoch := r.Shared.currentEpoch(); epoch != r.epoch {
		r.epoch = epoch
		r.startOver()
	}
	if r.version == "" {
		if r.listed != "" {
			r.sign(Relisted)
		}
		r.early.begin()
		r.health.listing()
		if r.pagesOnly || r.failed >= maxStreamedLists {
			if err := r.listPages(ctx); err != nil {
				return end{err: err}
			}
			listed = true
		}
	}
	e := r.watch(ctx)
	e.progress = e.progress || listed
	return e
}

// watch watches from the last version. Without one, it starts with a streamed list.
func (r *run) watch(ctx context.Context) end {
	o := kube.WatchOptions{ResourceVersion: r.version, Selector: r.Selector, Fields: r.Fields, ServerTimeout: r.ServerTimeout, Share: r.Share}
	limit := r.ClientTimeout
	var list *listing
	if r.version == "" {
		list = r.beginList()
		o.SendInitialEvents = true
		// The server would count the time of the list as well, and cut the watch short.
		o.ServerTimeout = 0
		if limit == 0 || r.ServerTimeout > 0 && r.ServerTimeout < limit {
			limit = r.ServerTimeout
		}
	}
	w, err := r.client.Watch(ctx, r.Info, r.Namespace, o)
	if err != nil {
		return end{err: err, streaming: o.SendInitialEvents}
	}
	defer w.Close()
	r.sign(Heard)
	if list == nil {
		if r.watched {
			r.sign(Resumed)
		}
		r.watched = true
		r.health.watching()
	}
	before := r.version
	guard := r.startGuard(ctx, w, limit)
	defer guard.stop()
	defer r.startJoins(ctx)()
	err = r.follow(ctx, w, guard, &list)
	stayed := guard.age() >= r.MaxBackoff
	return end{
		err:       err,
		opened:    true,
		streaming: list != nil,
		progress:  r.version != before || stayed,
		beyond:    r.version != "" && r.version != r.listed || stayed,
		lasted:    guard.age(),
	}
}

// listPages lists all objects in pages.
func (r *run) listPages(ctx context.Context) error {
	list := r.beginList()
	o := kube.ListOptions{Selector: r.Selector, Fields: r.Fields, Skipped: func(id object.Identity) { r.skip(list, id) }}
	if r.unpaged {
		o.Limit = -1
	}
	version, err := r.client.List(ctx, r.Info, r.Namespace, o, func(b *object.Body) error {
		r.sign(Heard)
		r.deliverListed(ctx, list, b)
		return ctx.Err()
	})
	if err != nil {
		// The server keeps the snapshot behind the pages only for some minutes, and we
		// were too slow.
		r.unpaged = apierrors.IsResourceExpired(err) || apierrors.IsGone(err)
		return err
	}
	r.finishList(list, version)
	return nil
}

// startOver makes the next list authoritative, because the server's versions went back.
func (r *run) startOver() {
	r.version, r.restore = "", true
	r.early.forget()
	r.pause.reset()
	r.relists.reset()
}

// beginList prepares for a list. It must be called before the first request.
func (r *run) beginList() *listing {
	r.Scope.begin()
	list := newListing(r.Known)
	r.mark, r.floor = r.Shared.Mark(), r.Shared.reached(r.of)
	return list
}

// skip handles an unreadable object of a list. The object exists, so its deletion is
// not delivered.
func (r *run) skip(list *listing, id object.Identity) {
	if former, replaced := list.saw(id); replaced && !r.early.settled(former.UID, "") {
		r.deliver(r.tombstone(former, r.mark))
	}
}

func (r *run) deliverListed(ctx context.Context, list *listing, b *object.Body) {
	if former, replaced := list.saw(b.Identity); replaced && !r.early.settled(former.UID, "") {
		r.deliver(r.tombstone(former, r.mark))
	}
	ahead, stale := r.early.check(kube.Listed, b.Identity)
	switch {
	case stale:
	case ahead: // it was created after the operator started
		r.deliver(Event{Type: kube.Modified, Body: b, Mark: r.Shared.Mark()})
	default:
		r.deliver(Event{Type: kube.Listed, Body: b, Mark: r.mark, Authoritative: r.restore})
	}
	r.early.listed(ctx, r.Stream)
}

func (r *run) finishList(list *listing, version string) {
	r.early.close()
	for id := range list.missing() {
		if !r.early.settled(id.UID, version) {
			r.deliver(r.tombstone(id, r.mark))
		}
	}
	for _, id := range r.early.outlived(version) {
		r.deliver(r.tombstone(id, r.mark))
	}
	r.deliver(Event{Type: Synced, Namespaces: r.Scope.finish()})
	r.version, r.listed, r.failed, r.unpaged, r.watched, r.restore = version, version, 0, false, false, false
	if v, valid := (object.Identity{ResourceVersion: version}).Version(); valid {
		r.Shared.listed(r.Stream, r.epoch, v, r.floor)
	}
}

// follow delivers the events of a watch until it ends. While *list is not nil, initial
// events are being received.
func (r *run) follow(ctx context.Context, w *kube.Watch, guard *guard, list **listing) error {
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
		r.sign(Heard)
		switch e.Type {
		case kube.Added, kube.Modified, kube.Deleted:
			guard.changed()
			r.delivering <- struct{}{}
			r.take(ctx, e, *list)
			<-r.delivering
		case kube.Bookmark:
			if *list != nil && e.InitialEnd {
				r.delivering <- struct{}{}
				r.finishList(*list, e.Body.ResourceVersion)
				<-r.delivering
				*list = nil
				r.watched = true
				r.health.watching()
			}
		case kube.Error:
			return trouble{statusError(r.Info, e)}
		default:
			r.warnOfType(string(e.Type))
			continue
		}
		// Initial events are not ordered by version, so none of them is a point to
		// resume at.
		if *list == nil && e.Body.ResourceVersion != "" {
			r.version = e.Body.ResourceVersion
			if v, valid := e.Body.Version(); valid {
				r.Shared.passed(r.epoch, r.of, v)
				r.early.passed(v)
			}
		}
	}
}

// take delivers an event of an object. For an unreadable object it delivers only the
// deletion, because the receiver may know an earlier, readable version.
func (r *run) take(ctx context.Context, e kube.Event, list *listing) {
	b := e.Body.WithType(r.Info.APIVersion(), r.Info.Kind)
	switch {
	case e.Unreadable && e.Type != kube.Deleted && list != nil:
		r.skip(list, b.Identity)
		return
	case e.Unreadable && e.Type != kube.Deleted:
		return
	case e.Type == kube.Added && list != nil:
		r.deliverListed(ctx, list, b)
		return
	case e.Type == kube.Deleted && list != nil:
		list.gone(b.Identity)
	}
	if _, stale := r.early.check(e.Type, b.Identity); !stale {
		r.deliver(Event{Type: e.Type, Body: b, Mark: r.Shared.Mark(), Missed: e.Unreadable})
	}
}

// statusError converts an ERROR event into an error.
func statusError(info kind.Info, e kube.Event) error {
	return fmt.Errorf("watch %s: the server sent an error: %w", info, &apierrors.StatusError{ErrStatus: *e.Status})
}

func (r *run) warnOfType(t string) {
	if r.unknown.First(t) {
		r.Log.Warn("Ignoring events of an unknown type.", "type", t)
	}
}
