package childwatch

import (
	"hash/maphash"
	"iter"
	"strconv"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
)

// entry is a child as the store keeps it. Most objects have several children, so it is
// small: a [Child] takes three times its memory.
type entry struct {
	kind   *children.Key // only the type; entries of the same kind share it
	packed object.Packed
	owner  string // entries with the same owner share it
	rare   *rare  // nil means that it has none, as most children
	mark   uint64

	stamp, digest uint32
	digested      bool // digest is known
	controlled    bool // the owner is the controlling owner
	applied       bool
	labelled      bool
	finalized     bool
	orphan        bool
	hollow        bool

	next, previous *entry // of the same owner
	colliding      *entry // of another name with the same hash
}

// rare is the part of an entry that most children do not need.
type rare struct {
	digest    string // if it is not the text of a number
	readiness readiness.Verdict
}

// entryOf returns the child as an entry.
func (all *entries) entryOf(c *Child) *entry {
	kind := children.Key{APIVersion: c.APIVersion, Kind: c.Kind}
	if all.kinds[kind] == nil {
		all.kinds[kind] = &kind
	}
	e := &entry{
		kind: all.kinds[kind], packed: *c.packed, owner: c.Owner, mark: c.mark, stamp: c.Stamp, controlled: c.Controller != "",
		applied: c.Applied, labelled: c.Labelled, finalized: c.Finalized, orphan: c.Orphan, hollow: c.hollow,
	}
	digest := c.Digest
	if n, err := strconv.ParseUint(digest, 16, 32); err == nil && children.DigestText(uint32(n)) == digest {
		e.digest, e.digested, digest = uint32(n), true, ""
	}
	if digest != "" || c.Readiness != (readiness.Verdict{}) {
		e.rare = &rare{digest, c.Readiness}
	}
	return e
}

func (e *entry) key() children.Key {
	return children.Key{APIVersion: e.kind.APIVersion, Kind: e.kind.Kind, Namespace: e.packed.Namespace(), Name: e.packed.Name()}
}

// child returns what [entries.entryOf] was called with. nil is the child of nil.
func (e *entry) child() *Child {
	if e == nil {
		return nil
	}
	c := &Child{
		Key: e.key(), UID: e.packed.UID(), Owner: e.owner, Stamp: e.stamp, Applied: e.applied, Labelled: e.labelled,
		Deleting: e.packed.Deleting(), Finalized: e.finalized, Orphan: e.orphan, packed: &e.packed, hollow: e.hollow, mark: e.mark,
	}
	if e.controlled {
		c.Controller = e.owner
	}
	if e.digested {
		c.Digest = children.DigestText(e.digest)
	}
	if e.rare != nil {
		c.Readiness = e.rare.readiness
		if e.rare.digest != "" {
			c.Digest = e.rare.digest
		}
	}
	return c
}

// entries has the known children. Callers must hold a lock.
type entries struct {
	hash  func(children.Key) uint64
	kinds map[children.Key]*children.Key
	known map[string]*entry // by uid
	named map[uint64]*entry // by the hash of the key; of each name, only the newest child
	owned map[string]*entry // the first child of each owner, by the uid of the owner
}

func newEntries() entries {
	seed := maphash.MakeSeed()
	hash := func(k children.Key) uint64 { return maphash.Comparable(seed, k) }
	return entries{hash: hash, kinds: map[children.Key]*children.Key{}, known: map[string]*entry{}, named: map[uint64]*entry{}, owned: map[string]*entry{}}
}

// find returns the newest child with the name. nil means that there is none.
func (all *entries) find(k children.Key) *entry {
	e := all.named[all.hash(k)]
	for e != nil && e.key() != k {
		e = e.colliding
	}
	return e
}

// of returns the children of an owner.
func (all *entries) of(owner string) iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for e := all.owned[owner]; e != nil && yield(e); {
			e = e.next
		}
	}
}

// add adds an entry whose uid is not known yet.
func (all *entries) add(e *entry) {
	all.known[e.packed.UID()] = e
	k := e.key()
	all.forgetName(k)
	hash := all.hash(k)
	e.colliding, all.named[hash] = all.named[hash], e
	if e.owner == "" {
		return
	}
	if first := all.owned[e.owner]; first != nil {
		e.owner, e.next, first.previous = first.owner, first, e
	}
	all.owned[e.owner] = e
}

// remove removes an entry that was added.
func (all *entries) remove(e *entry) {
	delete(all.known, e.packed.UID())
	if k := e.key(); all.find(k) == e {
		all.forgetName(k)
	}
	if e.next != nil {
		e.next.previous = e.previous
	}
	switch {
	case e.previous != nil:
		e.previous.next = e.next
	case e.owner == "":
	case e.next != nil:
		all.owned[e.owner] = e.next
	default:
		delete(all.owned, e.owner)
	}
}

// forgetName removes the name from those that find knows.
func (all *entries) forgetName(k children.Key) {
	hash := all.hash(k)
	first := all.named[hash]
	for at := &first; *at != nil; at = &(*at).colliding {
		if e := *at; e.key() == k {
			*at, e.colliding = e.colliding, nil
			break
		}
	}
	if delete(all.named, hash); first != nil {
		all.named[hash] = first
	}
}
