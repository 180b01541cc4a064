package stream

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// longList is the number of objects, and slowList the duration, after which a list
// counts as long. Shorter lists open no second watch: objects that are created during
// them wait for the end of the list.
const (
	longList = 50
	slowList = time.Second
)

// headStart limits how long a list waits for the second watch to open.
const headStart = time.Second

// maxNewcomers limits the objects that are delivered ahead of one list, and with them
// the memory that they need.
const maxNewcomers = 10_000

// newcomers delivers objects that are created while a long list is being delivered. The
// server sends them on the same connection after the list, so they would wait until the
// receiver has processed the whole list. A second watch, opened early during the list,
// delivers them ahead. It closes when a list is complete. If a list fails, it stays
// open for the next one.
//
// The second watch is only an optimization. It delivers only events of objects whose
// creation it saw, and the stream drops those events when it receives them. Events
// that it cannot deliver at once are left to the stream, and with them all later events
// of the object, which keeps each object's events in order. If the second watch fails,
// only time is lost.
type newcomers struct {
	// tell delivers an event without blocking, and reports whether it was taken. nil
	// disables the second watch.
	tell func(Event) (taken bool)

	count int            // objects in this list so far
	began time.Time      // start of this list
	end   func()         // closes the watch; nil means that there is none
	done  sync.WaitGroup // for the goroutine of the watch

	mu      sync.Mutex           // also held during tell
	over    bool                 // the watch has ended, not by us
	reached uint64               // highest version that the stream received since shortly before the watch was opened
	current string               // uid of the object that the stream delivers or delivered last
	told    uint64               // highest version that was delivered ahead
	met     map[string]*newcomer // by uid
	former  map[name]bool        // names whose earlier objects are left to the stream
}

type newcomer struct {
	version uint64 // of the last event, delivered by either watch
	deleted bool   // that event was the deletion
	left    bool   // the stream delivers the rest
	seen    bool   // the stream has received it since the start of the list
	place   name
}

// begin prepares for the next list.
func (n *newcomers) begin() {
	n.count, n.began = 0, time.Now()
	n.mu.Lock()
	for _, o := range n.met {
		o.seen = false
	}
	n.mu.Unlock()
	if n.end == nil || n.ended() {
		n.close()
		n.reached, n.former = 0, map[name]bool{}
		for _, o := range n.met {
			o.left = true // the next watch misses events in between
		}
	}
}

// listed counts the objects of the list, and opens the second watch when the list is
// long. The list waits briefly for it: otherwise the watch would start slowly while all
// goroutines are busy with the list.
func (n *newcomers) listed(ctx context.Context, s *Stream) {
	if n.count++; n.tell == nil || n.end != nil || !n.long() {
		return
	}
	ctx, n.end = context.WithCancel(ctx)
	opening, opened := context.WithTimeout(ctx, headStart)
	n.over = false
	n.done.Go(func() {
		defer opened()
		if err := n.watch(ctx, s, opened); err != nil && ctx.Err() == nil {
			s.Log.Debug("Cannot watch for objects that are created during the list; they are delivered after it.", "error", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.over = true
	})
	<-opening.Done()
}

// long reports whether the list counts as long.
func (n *newcomers) long() bool {
	return n.count >= longList || n.count > 0 && time.Since(n.began) >= slowList
}

func (n *newcomers) ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over
}

// close closes the watch, if there is one, and waits for its goroutine.
func (n *newcomers) close() {
	if n.end != nil {
		n.end()
		n.done.Wait()
		n.end = nil
	}
}

// watch delivers newcomers until ctx is done. It returns an error if it ends earlier.
func (n *newcomers) watch(ctx context.Context, s *Stream, opened func()) error {
	now, err := s.client.List(ctx, s.Info, s.Namespace, kube.ListOptions{Selector: s.Selector, Fields: s.Fields, Max: 1}, func(*object.Body) error { return nil })
	if err != nil {
		return err
	}
	w, err := s.client.Watch(ctx, s.Info, s.Namespace, kube.WatchOptions{ResourceVersion: now, Selector: s.Selector, Fields: s.Fields})
	if err != nil {
		return err
	}
	defer w.Close()
	opened()
	for n.room() {
		e, err := w.Next()
		if err != nil {
			return err
		}
		switch e.Type {
		case kube.Added, kube.Modified, kube.Deleted:
			if !s.Scope.admits(e.Type, e.Body.Identity) {
				continue
			}
			if e.Unreadable {
				n.leave(e.Body.Identity)
				continue
			}
			n.take(Event{Type: e.Type, Body: e.Body.WithType(s.Info.APIVersion(), s.Info.Kind), Mark: s.Shared.Mark()})
		case kube.Error:
			return statusError(s.Info, e)
		}
	}
	return nil
}

func (n *newcomers) room() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.met)+len(n.former) < maxNewcomers
}

// leave leaves all further events of an unreadable object to the stream.
func (n *newcomers) leave(id object.Identity) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.met[id.UID]; o != nil {
		o.left = true
	}
	n.former[name{id.Namespace, id.Name}] = true
}

// take delivers an event of the second watch, unless it belongs to the stream.
func (n *newcomers) take(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := e.Body.Identity
	place := name{id.Namespace, id.Name}
	o := n.met[id.UID]
	if o == nil {
		// If the object, or another one of the same name, existed before, its events
		// belong to the stream.
		o = &newcomer{left: e.Type != kube.Added || n.former[place]}
	}
	version, valid := id.Version()
	if o.left = o.left || !valid || version <= n.reached || id.UID == n.current || !n.tell(e); o.left {
		if e.Type == kube.Deleted {
			n.former[place] = true
		}
		return
	}
	if n.met == nil {
		n.met = map[string]*newcomer{}
	}
	o.version, o.deleted, o.place = version, e.Type == kube.Deleted, place
	n.met[id.UID], n.told = o, max(n.told, version)
}

// check is called for every event of the stream. ahead reports whether the object was
// delivered ahead and still exists; stale, whether this event was delivered already. If
// it was not, the rest of the object's events belong to the stream.
func (n *newcomers) check(t kube.EventType, id object.Identity) (ahead, stale bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	version, valid := id.Version()
	n.reached, n.current = max(n.reached, version), id.UID
	o := n.met[id.UID]
	if o == nil {
		return false, false
	}
	o.seen = true
	// Servers may send a deletion with the version of the last change.
	ahead = !o.deleted
	stale = valid && (version < o.version || version == o.version && (t != kube.Deleted || o.deleted))
	if !stale {
		o.left, o.version, o.deleted = true, version, t == kube.Deleted
	}
	return ahead, stale
}

// settled reports whether an object that is missing in a list of the given version
// needs no tombstone: its deletion was delivered, or it was seen in a later version
// because it matched the selector again. Otherwise the stream delivers its deletion.
func (n *newcomers) settled(uid, version string) bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	o := n.met[uid]
	if o == nil {
		return false
	}
	v, valid := object.Identity{ResourceVersion: version}.Version()
	settled := o.deleted || valid && o.version > v
	o.left, o.deleted = o.left || !settled, o.deleted || !settled
	return settled
}

// outlived returns the objects that were delivered ahead during the list, but were gone at
// the version of the list. The second watch may be later than the list, and it was closed
// before it delivered their deletions. The stream continues after them.
func (n *newcomers) outlived(version string) (gone []object.Identity) {
	v, valid := object.Identity{ResourceVersion: version}.Version()
	n.mu.Lock()
	defer n.mu.Unlock()
	for uid, o := range n.met {
		if valid && !o.seen && !o.deleted && o.version <= v {
			o.left, o.deleted = true, true
			gone = append(gone, object.Identity{Namespace: o.place.namespace, Name: o.place.name, UID: uid})
		}
	}
	return gone
}

// passed forgets the newcomers once the stream has reached the last version that was
// delivered ahead.
func (n *newcomers) passed(version uint64) {
	if len(n.met) > 0 && version >= n.told {
		n.met = nil
	}
}

// forget drops everything, because the server's versions went back and known versions
// are meaningless.
func (n *newcomers) forget() {
	n.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reached, n.told, n.current, n.met, n.former = 0, 0, "", nil, map[name]bool{}
}
