package childwatch

import (
	"errors"
	"iter"
	"slices"
	"strings"
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
	// must not block for long. Calls are never concurrent.
	Wake func(owner, handler string)

	// hash decodes an object, which may be large. The lock must not be held: turns of all
	// owners need it.
	hash func(*object.Body) uint64

	mu     sync.Mutex
	owners map[string][]*watcher // by the uid of the owner
	named  map[name][]*referrers // sorted by the namespaces of the owners
	known  map[string]*referent  // by uid
	counts map[string]int64      // the memory of the references of owners, by their namespaces
	used   int64                 // the sum of counts
	limits referenceLimits
	wakes  wakes

	// dropped are handlers of owners that were dropped, whose references are not forgotten yet.
	// A goroutine does that while there are some.
	dropped []*watcher
}

type name struct{ namespace, name string }

// memory returns the memory of a reference to the name, in bytes. Nothing bounds the names that a
// function returns: they may be whole texts of a spec.
func (n name) memory() int64 { return int64(referenceMemory + len(n.namespace) + len(n.name)) }

// watcher is a handler of an owner, with its references.
type watcher struct {
	owner, namespace, handler string
	names                     []name
	of                        []*kind.Selector // of the names
	places                    []uint32         // the positions of their uses in those of their referrers
	woken                     uint64           // the last step that woke it; see [wakes]
}

// referrers are the references of the owners in one namespace to one name.
type referrers struct {
	namespace string // of the owners
	uses      []use
}

// use is one reference of a handler: the one with the index.
type use struct {
	by    *watcher
	index uint32
}

const (
	// referenceMemory is about the memory of a reference, in bytes, without its name.
	referenceMemory = 256
	// maxReferences limits the memory of the references of all owners in a namespace, in bytes.
	maxReferences = 48 << 20
)

// referenceLimits limit the memory of references, in bytes: their names come from objects of tenants.
type referenceLimits struct {
	all  int64
	each int64 // of one namespace
	free int64 // that each namespace can have, whatever the others have
}

// referencesWithin returns the limits for a process with this memory limit.
func referencesWithin(memory int64) referenceLimits {
	return referenceLimits{all: memory / 8, each: min(memory/16, maxReferences), free: memory / 512}
}

// ErrTooManyReferences means that there are too many references.
var ErrTooManyReferences = errors.New("the objects of the namespace, or of all namespaces together, refer to so many others that there is no memory for more; " +
	"refer to fewer, or increase the memory limit of the operator")

// referent is an object of a watched kind.
type referent struct {
	name
	kind    string
	version string
	content uint64 // a hash; 0 means unknown, because no owner refers to it
}

// NewReferences returns an empty collection, for a process with this memory limit in bytes. It may be
// huge.
func NewReferences(wake func(owner, handler string), memoryLimit int64) *References {
	return &References{
		Wake: wake, hash: (*object.Body).ContentHash, owners: map[string][]*watcher{}, named: map[name][]*referrers{}, known: map[string]*referent{},
		counts: map[string]int64{}, limits: referencesWithin(memoryLimit),
	}
}

// Set replaces the references of one handler of an owner in the namespace. If the error is
// [ErrTooManyReferences], the handler has none afterwards. Set must be called before the handler
// reads the objects: new references get no wake for changes before the end of the call.
func (r *References) Set(owner, namespace, handler string, refs []Reference) error {
	refs = distinct(refs)
	former, same := r.detach(owner, handler, refs)
	if same {
		return nil
	}
	if former != nil {
		r.forget(former)
	}
	if len(refs) == 0 {
		return nil
	}
	var memory int64
	for _, ref := range refs {
		memory += name{ref.Namespace, ref.Name}.memory()
	}
	if !r.reserve(namespace, memory) {
		return ErrTooManyReferences
	}
	w := &watcher{owner: owner, namespace: namespace, handler: handler, names: make([]name, len(refs)), of: make([]*kind.Selector, len(refs)), places: make([]uint32, len(refs))}
	r.inParts(len(refs), func(i int) {
		// A copy, because the texts may be parts of much longer ones.
		n := name{strings.Clone(refs[i].Namespace), strings.Clone(refs[i].Name)}
		to := r.to(n, namespace)
		w.names[i], w.of[i], w.places[i] = n, refs[i].Of, uint32(len(to.uses))
		to.uses = append(to.uses, use{w, uint32(i)})
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	r.owners[owner] = append(r.owners[owner], w)
	return nil
}

// detach removes the handler from those of its owner, unless it has the same references. The
// caller must forget its references.
func (r *References) detach(owner, handler string, refs []Reference) (former *watcher, same bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	i := slices.IndexFunc(r.owners[owner], func(w *watcher) bool { return w.handler == handler })
	if i < 0 {
		return nil, false
	}
	former = r.owners[owner][i]
	if former.equals(refs) {
		return nil, true
	}
	if r.owners[owner] = slices.Delete(r.owners[owner], i, i+1); len(r.owners[owner]) == 0 {
		delete(r.owners, owner)
	}
	return former, false
}

// reserve counts the memory of references of the namespace, unless there would be too many.
func (r *References) reserve(namespace string, memory int64) (ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	has := r.counts[namespace] + memory
	if has > r.limits.each || has > r.limits.free && r.used+memory > r.limits.all {
		return false
	}
	r.counts[namespace] = has
	r.used += memory
	return true
}

// maxHeld limits the references that are added or removed while the lock is held: watches and the
// turns of all owners need it, and one owner may have as many references as its namespace.
const maxHeld = 500

// inParts calls a function with 0 to n-1, with the lock held, which it releases now and then.
func (r *References) inParts(n int, do func(i int)) {
	for i := 0; i < n; {
		r.mu.Lock()
		for end := min(n, i+maxHeld); i < end; i++ {
			do(i)
		}
		r.mu.Unlock()
	}
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

// Drop removes the references of an owner that no longer exists. It returns at once, because its
// callers hold locks. A goroutine removes the references soon afterwards.
func (r *References) Drop(owner string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	dropped := r.owners[owner]
	delete(r.owners, owner)
	if len(dropped) == 0 || r.wakes.closed {
		return
	}
	if r.dropped = append(r.dropped, dropped...); len(r.dropped) == len(dropped) {
		r.wakes.done.Go(r.forgetDropped)
	}
}

// forgetDropped forgets the references of owners that were dropped, until there are none.
func (r *References) forgetDropped() {
	for {
		r.mu.Lock()
		next := r.dropped[0]
		r.mu.Unlock()
		r.forget(next)
		r.mu.Lock()
		r.dropped[0] = nil
		if r.dropped = r.dropped[1:]; len(r.dropped) == 0 {
			r.dropped = nil
			r.mu.Unlock()
			return
		}
		r.mu.Unlock()
	}
}

// forget removes the names that the handler referred to. Many handlers may refer to a name, so
// each use has a known place. The owner must have the handler no longer.
func (r *References) forget(w *watcher) {
	r.inParts(len(w.names), func(i int) {
		n := w.names[i]
		to := r.to(n, w.namespace)
		last := to.uses[len(to.uses)-1]
		to.uses[w.places[i]], last.by.places[last.index] = last, w.places[i]
		to.uses[len(to.uses)-1] = use{}
		if to.uses = to.uses[:len(to.uses)-1]; len(to.uses) == 0 {
			r.remove(n, to)
		}
		r.used -= n.memory()
		if r.counts[w.namespace] -= n.memory(); r.counts[w.namespace] == 0 {
			delete(r.counts, w.namespace)
		}
	})
}

// to returns the referrers of a namespace to a name. It adds them if there are none.
func (r *References) to(n name, namespace string) *referrers {
	all := r.named[n]
	i, found := slices.BinarySearchFunc(all, namespace, func(of *referrers, namespace string) int { return strings.Compare(of.namespace, namespace) })
	if !found {
		all = slices.Insert(all, i, &referrers{namespace: namespace})
		r.named[n] = all
	}
	return all[i]
}

// remove removes referrers without references.
func (r *References) remove(n name, empty *referrers) {
	left := slices.DeleteFunc(r.named[n], func(of *referrers) bool { return of == empty })
	if r.named[n] = left; len(left) == 0 {
		delete(r.named, n)
	}
}

// deliver notes an event. If it is a change, the owners that refer to the object are woken soon
// afterwards: the watch does not wait for that. The first list of a process wakes none, because
// handlers wait for its end before they refer to objects. The first list after a pause shows the
// changes that were made meanwhile.
func (r *References) deliver(info kind.Info, e stream.Event) {
	id := e.Body.Identity
	now := &referent{name: name{id.Namespace, id.Name}, kind: kindName(info), version: id.ResourceVersion}
	if e.Type != kube.Deleted && r.isNamed(now.name) {
		now.content = r.hash(e.Body)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.update(id.UID, now, e.Type == kube.Deleted) {
		r.mark(info, now)
	}
}

// update notes the present state of an object. It reports whether that is a change. The lock
// must be held.
func (r *References) update(uid string, now *referent, gone bool) (changed bool) {
	before := r.known[uid]
	if gone {
		delete(r.known, uid)
		return before != nil
	}
	r.known[uid] = now
	return before == nil || before.version != now.version && (before.content == 0 || before.content != now.content)
}

// isNamed reports whether an owner refers to an object of the name, of any kind.
func (r *References) isNamed(n name) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.named[n]) > 0
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
