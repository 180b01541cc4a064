package stream

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// longList is how many objects a list has brought when it is taken for a long
// one, and slowList how long it takes. Others are over in a moment, and ask for
// nothing more; what is created before is no newcomer, and waits for the end.
const (
	longList = 50
	slowList = time.Second
)

// headStart is how long a list waits for the watch beside it, at most.
const headStart = time.Second

// maxNewcomers is how many objects are told of ahead of one list: what is
// remembered of them is to be bounded.
const maxNewcomers = 10_000

// newcomers are the objects that are created while a long list is being
// delivered. The server has them on the same connection, behind the list, so
// that they would wait for as long as the receiver needs for all the others. A
// second watch, which begins early within the list, brings them ahead. It ends
// when a list has come to its end, not when one fails: then another one follows.
//
// It only accelerates. The stream brings everything, and the watch only what is
// about objects whose creation it saw; what it told is dropped when the stream
// brings it. What it cannot tell at once, or leaves out for any reason, is left
// to the stream, and so is from then on everything about that object: each
// object's events come in their order. If it fails, nothing but time is lost.
type newcomers struct {
	// tell hands on an event without waiting, or refuses it. Nil for no watch.
	tell func(Event) (taken bool)

	count int            // of objects in this list
	began time.Time      // this list
	end   func()         // of the watch; nil if there is none
	done  sync.WaitGroup // for its goroutine

	mu      sync.Mutex           // held while something is told, too
	over    bool                 // the watch has ended by itself
	reached uint64               // the highest version that the stream brought since the watch began, and some time before
	current string               // the uid of what the stream delivers now, or did last
	told    uint64               // the highest version that was told
	met     map[string]*newcomer // by uid
	former  map[name]bool        // whose former objects' ends are left to the stream
}

type newcomer struct {
	version uint64 // of the last event, told by either
	deleted bool   // it was its deletion
	left    bool   // all the rest is left to the stream
}

// begin prepares for another list.
func (n *newcomers) begin() {
	n.count, n.began = 0, time.Now()
	if n.end == nil || n.ended() {
		n.close()
		n.reached, n.former = 0, map[name]bool{}
		for _, o := range n.met {
			o.left = true // the next watch does not know what has happened meanwhile
		}
	}
}

// listed counts the objects of the list, and opens the watch when it is long. The
// list waits for that a little, or else it would be slow to begin while all
// are busy with what the list brings.
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
			s.Log.Debug("What is created during the list is not followed ahead of it.", "error", err)
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		n.over = true
	})
	<-opening.Done()
}

// long tells whether the list has come to be a long one.
func (n *newcomers) long() bool {
	return n.count >= longList || n.count > 0 && time.Since(n.began) >= slowList
}

func (n *newcomers) ended() bool {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.over
}

// close ends the watch, if there is one, and waits for that.
func (n *newcomers) close() {
	if n.end != nil {
		n.end()
		n.done.Wait()
		n.end = nil
	}
}

// watch tells of newcomers until ctx is done. Its error says why it ended before.
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
			if e.Unreadable {
				n.leave(e.Body.Identity)
				continue
			}
			n.take(Event{Type: typeOf(e.Type), Body: e.Body.WithType(s.Info.APIVersion(), s.Info.Kind), Mark: s.Shared.Mark()})
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

// leave lets the stream tell everything else about an object that cannot be read.
func (n *newcomers) leave(id object.Identity) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if o := n.met[id.UID]; o != nil {
		o.left = true
	}
	n.former[name{id.Namespace, id.Name}] = true
}

// take tells an event of the watch, if that is for it to tell.
func (n *newcomers) take(e Event) {
	n.mu.Lock()
	defer n.mu.Unlock()
	id := e.Body.Identity
	place := name{id.Namespace, id.Name}
	o := n.met[id.UID]
	if o == nil {
		// Of objects that existed before, others by the same name included, the
		// stream must tell first.
		o = &newcomer{left: e.Type != Added || n.former[place]}
	}
	version, valid := id.Version()
	if o.left = o.left || !valid || version <= n.reached || id.UID == n.current || !n.tell(e); o.left {
		if e.Type == Deleted {
			n.former[place] = true
		}
		return
	}
	if n.met == nil {
		n.met = map[string]*newcomer{}
	}
	o.version, o.deleted = version, e.Type == Deleted
	n.met[id.UID], n.told = o, max(n.told, version)
}

// check tells whether an event of the stream is about an object that is known
// ahead of it, and whether the event itself was told, too. If not, the stream goes
// on with that object alone.
func (n *newcomers) check(t Type, id object.Identity) (ahead, stale bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	version, valid := id.Version()
	n.reached, n.current = max(n.reached, version), id.UID
	o := n.met[id.UID]
	if o == nil {
		return false, false
	}
	// Servers may send deletions with the version of the last change.
	ahead = !o.deleted
	stale = valid && (version < o.version || version == o.version && (t != Deleted || o.deleted))
	if !stale {
		o.left, o.version, o.deleted = true, version, t == Deleted
	}
	return ahead, stale
}

// settled tells whether it needs no tombstone of an object that a list of the
// version did not bring: its deletion was told, or it is known to exist after
// that, having come back into the selection. If not, its end is told by the stream.
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

// passed forgets the newcomers once the stream has come to where the watch had
// got.
func (n *newcomers) passed(version uint64) {
	if len(n.met) > 0 && version >= n.told {
		n.met = nil
	}
}

// forget drops all that was told: the versions of the server went back, so that
// they mean nothing any more.
func (n *newcomers) forget() {
	n.close()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.reached, n.told, n.current, n.met, n.former = 0, 0, "", nil, map[name]bool{}
}
