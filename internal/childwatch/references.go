package childwatch

import (
	"fmt"
	"iter"
	"slices"
	"sync"

	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/stream"
	"gopf.dev/gopf/kind"
)

// Reference names an object that is not a child, but whose changes call a reconcile
// handler.
type Reference struct {
	Of              *kind.Selector // the same for all references of a declaration
	Namespace, Name string
}

// References has the references of all owners, and the objects of the watched kinds, as
// far as a list must detect their deletion. It is safe for concurrent use.
type References struct {
	// Wake is called when an object that the handler of the owner refers to has changed. It
	// must not block for long.
	Wake func(owner, handler string)

	// hash decodes an object, which may be large. The lock must not be held: turns of all
	// owners need it.
	hash func(*object.Body) uint64

	mu     sync.Mutex
	owners map[string][]*watcher // by the uid of the owner
	named  map[name][]use
	known  map[string]*referent // by uid
	counts map[string]int       // of the references of owners, by their namespaces
}

type name struct{ namespace, name string }

// watcher is a handler of an owner, with its references.
type watcher struct {
	owner, namespace, handler string
	names                     []name
	of                        []*kind.Selector // of the names
	places                    []uint32         // the positions of their uses among those of the same name
}

// use is one reference of a handler: the one with the index.
type use struct {
	by    *watcher
	index uint32
}

// maxReferences limits the references of all owners in a namespace: their names come from
// objects of tenants. Each takes about 200 bytes.
const maxReferences = 200_000

// ErrTooManyReferences means that the owners of a namespace have too many references.
var ErrTooManyReferences = fmt.Errorf("the objects of the namespace refer to more than %d objects", maxReferences)

// referent is an object of a watched kind.
type referent struct {
	name
	kind    string
	version string
	content uint64 // a hash; 0 means unknown, because no owner refers to it
}

// NewReferences returns an empty collection.
func NewReferences(wake func(owner, handler string)) *References {
	return &References{
		Wake: wake, hash: (*object.Body).ContentHash, owners: map[string][]*watcher{}, named: map[name][]use{}, known: map[string]*referent{}, counts: map[string]int{},
	}
}

// Set replaces the references of one handler of an owner in the namespace. If the error is
// [ErrTooManyReferences], the handler has none afterwards.
func (r *References) Set(owner, namespace, handler string, refs []Reference) error {
	refs = distinct(refs)
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.IndexFunc(r.owners[owner], func(w *watcher) bool { return w.handler == handler }); i >= 0 {
		former := r.owners[owner][i]
		if former.equals(refs) {
			return nil
		}
		r.forget(former)
		if r.owners[owner] = slices.Delete(r.owners[owner], i, i+1); len(r.owners[owner]) == 0 {
			delete(r.owners, owner)
		}
	}
	if len(refs) == 0 {
		return nil
	}
	if r.counts[namespace]+len(refs) > maxReferences {
		return ErrTooManyReferences
	}
	w := &watcher{owner: owner, namespace: namespace, handler: handler, names: make([]name, len(refs)), of: make([]*kind.Selector, len(refs)), places: make([]uint32, len(refs))}
	for i, ref := range refs {
		n := name{ref.Namespace, ref.Name}
		w.names[i], w.of[i], w.places[i] = n, ref.Of, uint32(len(r.named[n]))
		r.named[n] = append(r.named[n], use{w, uint32(i)})
	}
	r.owners[owner] = append(r.owners[owner], w)
	r.counts[namespace] += len(refs)
	return nil
}

// distinct returns the references without repetitions: their names come from objects of tenants.
func distinct(refs []Reference) []Reference {
	seen := make(map[Reference]bool, len(refs))
	var all []Reference
	for _, ref := range refs {
		if !seen[ref] {
			seen[ref] = true
			all = append(all, ref)
		}
	}
	return all
}

// equals reports whether the references are the same, in the same order.
func (w *watcher) equals(refs []Reference) bool {
	if len(refs) != len(w.names) {
		return false
	}
	for i, ref := range refs {
		if w.names[i] != (name{ref.Namespace, ref.Name}) || w.of[i] != ref.Of {
			return false
		}
	}
	return true
}

// Drop removes the references of an owner that no longer exists.
func (r *References) Drop(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, w := range r.owners[owner] {
		r.forget(w)
	}
	delete(r.owners, owner)
}

// forget removes the names that the handler referred to. Many handlers may refer to a name, so
// each use has a known place.
func (r *References) forget(w *watcher) {
	for i, n := range w.names {
		uses := r.named[n]
		last := uses[len(uses)-1]
		uses[w.places[i]], last.by.places[last.index] = last, w.places[i]
		uses[len(uses)-1] = use{}
		if r.named[n] = uses[:len(uses)-1]; len(uses) == 1 {
			delete(r.named, n)
		}
	}
	if r.counts[w.namespace] -= len(w.names); r.counts[w.namespace] == 0 {
		delete(r.counts, w.namespace)
	}
}

// deliver notes an event, and wakes the owners that refer to the object. A first list
// wakes none: their handlers wait for its end.
func (r *References) deliver(info kind.Info, e stream.Event, first bool) {
	for owner, handlers := range r.update(info, e) {
		for _, h := range handlers {
			if !first {
				r.Wake(owner, h)
			}
		}
	}
}

// update notes an event. It returns the handlers for which it is a change, by owner.
func (r *References) update(info kind.Info, e stream.Event) map[string][]string {
	id := e.Body.Identity
	now := &referent{name: name{id.Namespace, id.Name}, kind: kindName(info), version: id.ResourceVersion}
	if e.Type != kube.Deleted && r.isNamed(now.name) {
		now.content = r.hash(e.Body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	before := r.known[id.UID]
	if e.Type == kube.Deleted {
		delete(r.known, id.UID)
		if before == nil {
			return nil
		}
		return r.affected(info, now.name)
	}
	r.known[id.UID] = now
	if before != nil && (before.version == now.version || before.content != 0 && before.content == now.content) {
		return nil
	}
	return r.affected(info, now.name)
}

// isNamed reports whether an owner refers to an object of the name, of any kind.
func (r *References) isNamed(n name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.named[n]) > 0
}

// affected returns the handlers that refer to an object, by owner.
func (r *References) affected(info kind.Info, n name) map[string][]string {
	all := map[string][]string{}
	for _, u := range r.named[n] {
		by := u.by
		if !slices.Contains(all[by.owner], by.handler) && by.of[u.index].Matches(info) {
			all[by.owner] = append(all[by.owner], by.handler)
		}
	}
	return all
}

// identities returns the known objects of a kind in a namespace; "" means all.
func (r *References) identities(info kind.Info, namespace string) iter.Seq[object.Identity] {
	r.mu.Lock()
	defer r.mu.Unlock()
	var all []object.Identity
	for uid, known := range r.known {
		if known.kind == kindName(info) && (namespace == "" || known.namespace == namespace) {
			all = append(all, object.Identity{Namespace: known.namespace, Name: known.name.name, UID: uid})
		}
	}
	return slices.Values(all)
}

func kindName(info kind.Info) string { return info.APIVersion() + " " + info.Kind }
