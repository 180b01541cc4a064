package gopftest

import (
	"context"
	"errors"
	"fmt"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/internalversion"
	"k8s.io/apimachinery/pkg/watch"
)

const (
	// bookmarkInterval is the interval of bookmarks.
	bookmarkInterval = time.Minute
	// lastBookmarkDelay is the time between the last bookmark and the end of a watch.
	lastBookmarkDelay = 2 * time.Second
	// defaultWatchTime is the duration of watches without a timeout. The real API server
	// chooses one between 30 and 60 minutes at random; tests need a fixed one.
	defaultWatchTime = 45 * time.Minute
)

// errStreamEnds ends a watch normally.
var errStreamEnds = errors.New("the watch ends")

// stream is one watch.
type stream struct {
	*scope
	view     *view
	chosen   *selection
	position int64 // all changes up to this version are sent

	initial []*entry // existing objects, if the client wants them first
	listed  bool     // the client wants the existing objects first
	failure error    // to send as an event

	bookmarks bool      // the client wants them
	bookmark  time.Time // time of the next one
	deadline  time.Time

	request Request // request that opened the watch, for faults
	write   func(line []byte) error
}

// frame is an event on its way to a client.
type frame struct {
	kind   watch.EventType
	object []byte
	time   time.Time // time of the change; zero if the frame is not a change
	older  []byte    // the object before the change, if it was selected
}

// watch starts a watch. An invalid request is returned as an error. An invalid resource
// version is reported as an event of the watch.
func (s *scope) watch(ctx context.Context, options *internalversion.ListOptions, view *view) (*stream, error) {
	chosen, err := s.selection(options)
	if err != nil {
		return nil, err
	}
	asked, err := parseVersion(options.ResourceVersion)
	if err != nil {
		return nil, badVersion(options.ResourceVersion, err)
	}
	st := &stream{
		scope: s, view: view, chosen: chosen, bookmarks: options.AllowWatchBookmarks,
		listed: options.SendInitialEvents != nil && *options.SendInitialEvents,
	}
	lifetime := defaultWatchTime
	if options.TimeoutSeconds != nil && *options.TimeoutSeconds > 0 {
		lifetime = time.Duration(*options.TimeoutSeconds) * time.Second
	}
	st.deadline = time.Now().Add(lifetime)
	st.bookmark = st.nextBookmark()
	if st.listed {
		st.failure = s.await(ctx, asked)
	}
	st.begin(asked)
	return st, nil
}

// begin determines the version from which the watch starts.
func (st *stream) begin(asked int64) {
	st.store().mu.Lock()
	defer st.store().mu.Unlock()
	current, oldest := st.store().version, max(st.store().compacted, st.table().dropped)
	switch {
	case st.listed:
		st.initial, st.position = st.table().at(current), current
	case asked == 0:
		st.position = current
	case asked < oldest:
		st.failure = apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", asked, oldest))
	default:
		st.position = asked
	}
}

// run sends events until the watch times out, the client disconnects, or the resource is
// no longer served.
func (st *stream) run(ctx context.Context) error {
	ctx, cancel := context.WithDeadlineCause(ctx, st.deadline, errStreamEnds)
	defer cancel()
	err := st.failure
	if err == nil {
		err = st.list(ctx)
	}
	for err == nil {
		err = st.advance(ctx)
	}
	if apierrors.ReasonForError(err) != "" {
		return st.deliver(ctx, frame{kind: watch.Error, object: encode(statusOf(err))})
	}
	if errors.Is(context.Cause(ctx), errStreamEnds) {
		return nil
	}
	return err
}

// list sends the existing objects and the bookmark after them, if the client wants them.
func (st *stream) list(ctx context.Context) error {
	for _, e := range st.initial {
		if st.chosen.has(e) {
			if err := st.deliver(ctx, frame{kind: watch.Added, object: st.view.object(e)}); err != nil {
				return err
			}
		}
	}
	st.initial = nil
	if st.listed && st.bookmarks {
		return st.deliver(ctx, frame{kind: watch.Bookmark, object: st.view.bookmark(st.position, true)})
	}
	return nil
}

// advance sends new events, and then waits for more.
func (st *stream) advance(ctx context.Context) error {
	st.store().mu.Lock()
	t := st.table()
	events, dropped, changed, current := t.since(st.position), t.dropped, t.changed, st.store().version
	// Under the same lock as the events: a definition goes after its last object.
	res, served := st.cluster.kinds.byName(st.resource.groupResource())
	st.store().mu.Unlock()
	if st.position < dropped {
		return apierrors.NewResourceExpired(fmt.Sprintf("too old resource version: %d (%d)", st.position, dropped))
	}
	if served {
		if _, ok := res.version(st.version.name); !ok {
			return errStreamEnds // the definition no longer has this version
		}
	}
	for _, ev := range events {
		if f, ok := st.frame(ev); ok {
			if err := st.deliver(ctx, f); err != nil {
				return err
			}
		}
	}
	if !served {
		return errStreamEnds
	}
	// A position in the future stays: the client does not want older changes.
	st.position = max(st.position, current)

	if st.bookmarks && !time.Now().Before(st.bookmark) {
		st.bookmark = st.nextBookmark()
		return st.deliver(ctx, frame{kind: watch.Bookmark, object: st.view.bookmark(current, false)})
	}
	var due <-chan time.Time
	if st.bookmarks {
		due = time.After(time.Until(st.bookmark))
	}
	select {
	case <-changed:
		return nil
	case <-due:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// frame converts an event to the client's view: an object that becomes selected is
// added, an object that is no longer selected is deleted.
func (st *stream) frame(ev *event) (frame, bool) {
	was, is := st.chosen.has(ev.old), st.chosen.has(ev.new)
	f := frame{kind: watch.Modified, time: ev.time}
	if was {
		f.older = st.view.object(ev.old)
	}
	switch {
	case is && was:
		f.object = st.view.object(ev.new)
	case is:
		f.kind, f.object = watch.Added, st.view.object(ev.new)
	case was && ev.new != nil:
		f.kind, f.object = watch.Deleted, st.view.object(reversioned(ev.old, ev.version))
	case was:
		f.kind, f.object = watch.Deleted, st.view.object(ev.last)
	default:
		return f, false
	}
	return f, true
}

// reversioned returns a state with the version of a later change.
func reversioned(e *entry, version int64) *entry {
	obj := e.object()
	obj.SetResourceVersion(fmt.Sprint(version))
	return newEntry(obj, version)
}

// nextBookmark returns the time of the next bookmark: in a minute, or shortly before the end.
func (st *stream) nextBookmark() time.Time {
	next, last := time.Now().Add(bookmarkInterval), st.deadline.Add(-lastBookmarkDelay)
	if last.After(time.Now()) && next.After(last) {
		return last
	}
	return next
}
