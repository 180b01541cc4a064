package childwatch

import (
	"encoding/json"
	"hash/fnv"
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
	Of              kind.Selector
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
	owners map[string]map[string][]Reference // by the uid of the owner, then by handler
	named  map[name]map[referrer][]kind.Selector
	known  map[string]*referent // by uid
}

type name struct{ namespace, name string }

// referrer is a handler of an owner.
type referrer struct{ owner, handler string }

// referent is an object of a watched kind.
type referent struct {
	name
	kind    string
	version string
	content uint64 // a hash; 0 means unknown, because no owner refers to it
}

// NewReferences returns an empty collection.
func NewReferences(wake func(owner, handler string)) *References {
	return &References{Wake: wake, hash: contentHash, owners: map[string]map[string][]Reference{}, named: map[name]map[referrer][]kind.Selector{}, known: map[string]*referent{}}
}

// Set replaces the references of one handler of an owner.
func (r *References) Set(owner, handler string, refs []Reference) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.owners[owner][handler]
	if len(former)+len(refs) == 0 {
		return
	}
	if r.owners[owner] == nil {
		r.owners[owner] = map[string][]Reference{}
	}
	by := referrer{owner, handler}
	r.owners[owner][handler] = refs
	r.forget(by, former)
	for _, ref := range refs {
		n := name{ref.Namespace, ref.Name}
		if r.named[n] == nil {
			r.named[n] = map[referrer][]kind.Selector{}
		}
		r.named[n][by] = append(r.named[n][by], ref.Of)
	}
}

// Drop removes the references of an owner that no longer exists.
func (r *References) Drop(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	former := r.owners[owner]
	delete(r.owners, owner)
	for handler, refs := range former {
		r.forget(referrer{owner, handler}, refs)
	}
}

// forget removes the names that the handler referred to.
func (r *References) forget(by referrer, former []Reference) {
	for _, ref := range former {
		n := name{ref.Namespace, ref.Name}
		if delete(r.named[n], by); len(r.named[n]) == 0 {
			delete(r.named, n)
		}
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
	for by, selectors := range r.named[n] {
		if slices.ContainsFunc(selectors, func(of kind.Selector) bool { return len(of.Select([]kind.Info{info})) > 0 }) {
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

// contentHash returns a hash of everything but the resource version and managedFields.
func contentHash(b *object.Body) uint64 {
	content := timeless(b.Map())
	delete(content["metadata"].(map[string]any), "managedFields")
	raw, err := json.Marshal(content)
	if err != nil {
		return 0 // counts as changed
	}
	h := fnv.New64a()
	_, _ = h.Write(raw) // a hash never fails
	return h.Sum64()
}
