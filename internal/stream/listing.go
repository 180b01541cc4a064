package stream

import (
	"iter"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
)

// listing tracks which known objects have not appeared yet in the current list.
type listing struct {
	unseen map[name]string // name to uid
	// extra has further uids of names with several known objects: the receiver may
	// still be processing the deletion of earlier ones.
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

// saw records that an object is in the list. If another object was known under its
// name, it returns that one: its deletion must be delivered first.
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

// gone records the deletion of an object.
func (l *listing) gone(id object.Identity) {
	n := name{id.Namespace, id.Name}
	delete(l.extra, id.UID)
	if l.unseen[n] == id.UID {
		delete(l.unseen, n)
	}
}

// missing returns the known objects that are not in the list.
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

// tombstone returns a Deleted event for an object whose deletion was missed.
func (s *Stream) tombstone(id object.Identity, mark uint64) Event {
	metadata := map[string]any{"name": id.Name, "uid": id.UID}
	if id.Namespace != "" {
		metadata["namespace"] = id.Namespace
	}
	b, err := object.FromMap(map[string]any{
		"apiVersion": s.Info.APIVersion(), "kind": s.Info.Kind, "metadata": metadata,
	})
	if err != nil {
		b = &object.Body{Identity: id} // unreachable: strings can always be encoded
	}
	return Event{Type: kube.Deleted, Body: b, Missed: true, Mark: mark}
}
