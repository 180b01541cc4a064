package stream

import (
	"iter"

	"gopf.dev/gopf/internal/object"
)

// listing is one list under way: which of the known objects have not come up.
type listing struct {
	unseen map[name]string // uids
	// extra has the further uids of names that had several objects: the
	// receiver may be busy yet with the end of former ones.
	extra map[string]name
}

type name struct{ namespace, name string }

func newListing(known func() iter.Seq[object.Identity]) *listing {
	l := &listing{unseen: map[name]string{}, extra: map[string]name{}}
	if known == nil {
		return l
	}
	for id := range known() {
		n := name{id.Namespace, id.Name}
		if uid, taken := l.unseen[n]; taken && uid != id.UID {
			l.extra[id.UID] = n
		} else {
			l.unseen[n] = id.UID
		}
	}
	return l
}

// saw notes that an object is there. If another one was known by its name,
// that one is not any more, which should be said first.
func (l *listing) saw(id object.Identity) (former object.Identity, replaced bool) {
	n := name{id.Namespace, id.Name}
	if _, ok := l.extra[id.UID]; ok {
		delete(l.extra, id.UID)
		return former, false
	}
	uid, known := l.unseen[n]
	if !known {
		return former, false
	}
	delete(l.unseen, n)
	return object.Identity{Namespace: n.namespace, Name: n.name, UID: uid}, uid != id.UID
}

// gone notes that the deletion of an object was seen.
func (l *listing) gone(id object.Identity) {
	n := name{id.Namespace, id.Name}
	delete(l.extra, id.UID)
	if l.unseen[n] == id.UID {
		delete(l.unseen, n)
	}
}

// missing are the known objects that did not come up.
func (l *listing) missing() iter.Seq[object.Identity] {
	return func(yield func(object.Identity) bool) {
		for n, uid := range l.unseen {
			if !yield(object.Identity{Namespace: n.namespace, Name: n.name, UID: uid}) {
				return
			}
		}
		for uid, n := range l.extra {
			if !yield(object.Identity{Namespace: n.namespace, Name: n.name, UID: uid}) {
				return
			}
		}
	}
}

// tombstone is the event for an object whose deletion was not seen.
func (s *Stream) tombstone(id object.Identity, mark uint64) Event {
	metadata := map[string]any{"name": id.Name, "uid": id.UID}
	if id.Namespace != "" {
		metadata["namespace"] = id.Namespace
	}
	b, err := object.FromMap(map[string]any{
		"apiVersion": s.Info.APIVersion(), "kind": s.Info.Kind, "metadata": metadata,
	})
	if err != nil {
		b = &object.Body{Identity: id} // strings can be encoded, so never
	}
	return Event{Type: Deleted, Body: b, Missed: true, Mark: mark}
}
