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
	packed object.Packed // without the uid of the owner: see [Child.Body]
	owner  string        // entries with the same owner share it
	rare   *rare         // nil means that it has none, as most children
	mark   uint64

	stamp, digest uint32
	content       uint64
	digested      bool // digest is known
	controlled    bool // the owner is the controlling owner
	applied       bool
	labelled      bool
	finalized     bool
	orphan        bool
	hollow        bool
	former        bool // a newer child has the name

	next, previous *entry // of the same owner
	colliding      *entry // with the same hash
}

// rare is the part of an entry that most children do not need.
type rare struct {
	digest    string // if it is not the text of a number
	readiness readiness.Verdict
}

// entryOf returns the child as an entry.
func entryOf(c *Child) *entry {
	e := &entry{
		packed: *c.packed, owner: c.Owner, mark: c.mark, stamp: c.Stamp, content: c.Content, controlled: c.Controller != "",
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
	apiVersion, kind := e.packed.Type()
	namespace, name := e.packed.Names()
	return children.Key{APIVersion: apiVersion, Kind: kind, Namespace: namespace, Name: name}
}

// child returns what [entryOf] was called with. nil is the child of nil.
func (e *entry) child() *Child {
	if e == nil {
		return nil
	}
	c := &Child{
		Key: e.key(), UID: e.packed.UID(), Owner: e.owner, Stamp: e.stamp, Content: e.content, Applied: e.applied, Labelled: e.labelled,
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
	hash   func(children.Key) uint64
	hashed map[uint64]*entry // the last child with each hash; the others follow it
	owned  map[string]*entry // the first child of each owner, by the uid of the owner
}

func newEntries() entries {
	seed := maphash.MakeSeed()
	hash := func(k children.Key) uint64 {
		k.APIVersion = "" // an object may be known in one version of its kind, and be written in another
		return maphash.Comparable(seed, k)
	}
	return entries{hash, map[uint64]*entry{}, map[string]*entry{}}
}

// find returns the newest child with the name. nil means that there is none.
func (all *entries) find(k children.Key) *entry {
	e := all.hashed[all.hash(k)]
	for e != nil && (e.former || e.key() != k) {
		e = e.colliding
	}
	return e
}

// known returns the child with the uid, and with the name in any version of the kind. nil
// means that there is none.
func (all *entries) known(k children.Key, uid string) *entry {
	e := all.hashed[all.hash(k)]
	for e != nil && !e.packed.HasUID(uid) {
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

// each returns all children.
func (all *entries) each() iter.Seq[*entry] {
	return func(yield func(*entry) bool) {
		for _, e := range all.hashed {
			for ; e != nil; e = e.colliding {
				if !yield(e) {
					return
				}
			}
		}
	}
}

// add adds an entry whose uid is not known yet.
func (all *entries) add(e *entry) {
	k := e.key()
	if former := all.find(k); former != nil {
		former.former = true
	}
	hash := all.hash(k)
	e.colliding, all.hashed[hash] = all.hashed[hash], e
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
	hash := all.hash(e.key())
	first := all.hashed[hash]
	at := &first
	for *at != e {
		at = &(*at).colliding
	}
	*at = e.colliding
	if all.hashed[hash] = first; first == nil {
		delete(all.hashed, hash)
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
