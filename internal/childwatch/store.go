// Package childwatch watches the children of objects. The API server selects them by a
// label, so other objects of the same kinds are neither sent nor decoded.
//
// A [Store] has the known children of all owners, compressed. It remembers the owner of
// each child, so a deletion that a list detects still wakes the owner. [Watches] runs the
// streams that fill the store.
package childwatch

import (
	"iter"
	"strings"
	"sync"

	"gopf.dev/gopf/internal/children"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/readiness"
	"gopf.dev/gopf/kind"
)

// The marks of children. Users may see them, but must not change them.
const (
	// Label has the name of the operator. Child watches select by it.
	Label = "gopf.dev/children"
	// OwnerAnnotation names the owner of a child that cannot have an owner reference.
	OwnerAnnotation = "gopf.dev/owner"
	// DigestAnnotation has the digest of the content that the operator applied last.
	DigestAnnotation = "gopf.dev/applied"
)

// Child is a known child. It is immutable.
type Child struct {
	children.Key
	UID        string
	Controller string // the uid of the controlling owner; "" means none
	Owner      string // the uid of the controlling owner, or the one in the annotation
	Stamp      uint32
	Content    uint64 // see [children.Content]; 0 means that it is not known
	Digest     string // of the applied content; "" means that it is not known
	Applied    bool   // the operator has applied it
	Labelled   bool   // it has the label of the operator, so its watch shows it
	Deleting   bool
	Finalized  bool // it has finalizers, so a deletion takes time
	Orphan     bool // it outlives its owner
	Readiness  readiness.Verdict

	packed *object.Packed
	hollow bool   // packed has no content
	mark   uint64 // of the event or the response that it is from
}

// BelongsTo reports whether an object with the uid is the owner. namespace is that of the
// object; "" means that it is cluster-scoped. Kubernetes has no owner references to objects
// in other namespaces: a tenant could make its objects children of another tenant's object.
func (c *Child) BelongsTo(uid, namespace string) bool {
	return c.Owner == uid && (c.Controller == "" || namespace == "" || c.Namespace == namespace)
}

// Body returns the child without its managedFields. nil means that the store did not keep
// the content: see [maxLarge].
func (c *Child) Body() *object.Body {
	if c.hollow {
		return nil
	}
	return c.packed.BodyWith(c.Owner)
}

// HasContent reports whether the store kept the content. If not, [Child.Body] is nil.
func (c *Child) HasContent() bool { return !c.hollow }

// Size returns the size of the JSON without managedFields, in bytes.
func (c *Child) Size() int { return c.packed.JSONSize() }

// WriteSize returns the size of the child for the API server that processes a write to it:
// see [object.Body.WriteSize].
func (c *Child) WriteSize() int { return c.packed.WriteSize() }

// Same reports whether both are the same version of a child in the store. It may be false for
// one that was read outside of it.
func (c *Child) Same(as *Child) bool { return c.packed == as.packed }

// Version returns the resource version.
func (c *Child) Version() string { return c.packed.ResourceVersion() }

// OwnerText returns the value of [OwnerAnnotation] for an owner. orphan marks a child that
// outlives its owner.
func OwnerText(info kind.Info, of object.Identity, orphan bool) string {
	text := info.APIVersion() + "|" + info.Kind + "|" + of.Namespace + "|" + of.Name + "|" + of.UID
	if orphan {
		text += "|orphan"
	}
	return text
}

func ownerUID(text string) (uid string, orphan bool) {
	_, uid, orphan = ParseOwner(text)
	return uid, orphan
}

// ParseOwner returns what [OwnerText] was called with. An empty uid means that the text is
// malformed.
func ParseOwner(text string) (owner children.Key, uid string, orphan bool) {
	text, orphan = strings.CutSuffix(text, "|orphan")
	parts := strings.SplitN(text, "|", 6) // others may write it
	if len(parts) != 5 {
		return children.Key{}, "", false
	}
	return children.Key{APIVersion: parts[0], Kind: parts[1], Namespace: parts[2], Name: parts[3]}, parts[4], orphan
}

// Store has the known children. It is safe for concurrent use.
type Store struct {
	Manager string        // the field manager of the operator
	Mark    func() uint64 // see [stream.Shared.Mark]

	// equal unpacks two versions of a child. The lock must not be held: turns of all objects
	// need it.
	equal func(a, b *Child) bool

	mu      sync.Mutex
	sending map[children.Key]*held // children that the operator is writing now
	all     entries
	packers map[children.Key]*object.Packer // by kind; the other fields of the key are empty
	large   map[string]int                  // the bytes of large children, by namespace
}

// NewStore returns an empty store.
func NewStore(manager string, mark func() uint64) *Store {
	return &Store{
		Manager: manager, Mark: mark, equal: equal, sending: map[children.Key]*held{},
		all: newEntries(), packers: map[children.Key]*object.Packer{}, large: map[string]int{},
	}
}

func (s *Store) packer(info kind.Info) *object.Packer {
	s.mu.Lock()
	defer s.mu.Unlock()
	key := children.Key{APIVersion: info.APIVersion(), Kind: info.Kind}
	if s.packers[key] == nil {
		s.packers[key] = &object.Packer{}
	}
	return s.packers[key]
}

// Find returns a child by its name. nil means that it is not known.
func (s *Store) Find(k children.Key) *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.find(k).child()
}

// At returns a child in exactly the version of the identity, whose type may be missing. nil
// means that it is not known in that version.
func (s *Store) At(info kind.Info, id object.Identity) *Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	if e := s.all.known(keyOf(info, id), id.UID); e != nil && id.ResourceVersion != "" && e.packed.HasVersion(id.ResourceVersion) {
		return e.child()
	}
	return nil
}

func keyOf(info kind.Info, id object.Identity) children.Key {
	return children.Key{APIVersion: info.APIVersion(), Kind: info.Kind, Namespace: id.Namespace, Name: id.Name}
}

// Of returns the known children of an owner, in no order. Clients can create any number of objects
// that look like children; see [Store.Applied].
func (s *Store) Of(owner string) []*Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Child
	for e := range s.all.of(owner) {
		all = append(all, e.child())
	}
	return all
}

// Applied returns the known children of an owner that the operator has applied, without
// [Child.Orphan], in no order. namespace is that of the owner. It returns at most so many in this
// namespace or without one, and at most so many in others, without those that are being deleted.
//
// Clients of other namespaces can create any number of objects with the marks of children. They
// must not hide the children in the namespace of the owner.
func (s *Store) Applied(owner, namespace string, most int) []*Child {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []*Child
	near, far := most, most
	for e := range s.all.of(owner) {
		if !e.applied || e.orphan {
			continue
		}
		left := &near
		if at, _ := e.packed.Names(); at != "" && at != namespace {
			if e.packed.Deleting() {
				continue
			}
			left = &far
		}
		if *left == 0 {
			continue
		}
		*left--
		all = append(all, e.child())
	}
	return all
}

// held has the events of a child that arrived while the operator was writing it. They may
// be effects of that write.
type held struct {
	newest *Child // nil means none
	gone   string // the uid of a deleted child; "" means none
}

// Sending notes that the operator is about to write a child. The caller must call Sent or
// Dropped afterwards.
func (s *Store) Sending(k children.Key) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.sending[k] = &held{}
}

// Sent stores a child from the response to a write; nil means that the write failed. Older
// events do not replace it. It reports whether another client has changed the child
// meanwhile.
func (s *Store) Sent(k children.Key, c *Child) (changed bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	during := s.sending[k]
	delete(s.sending, k)
	if c == nil {
		return during != nil && (during.gone != "" || during.newest != nil)
	}
	if during != nil && during.gone == c.UID { // the deletion overtook the response
		return true
	}
	c.mark = s.Mark()
	if before := s.all.known(c.Key, c.UID); before == nil || !newer(&before.packed, c.packed) {
		s.put(c)
	}
	return during != nil && during.newest != nil && newer(during.newest.packed, c.packed)
}

// Dropped removes a child that the operator has deleted.
func (s *Store) Dropped(c *Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.sending, c.Key)
	if known := s.all.known(c.Key, c.UID); known != nil && !known.child().Slow() {
		s.remove(known)
	}
}

// Slow reports whether the child exists for a while after its deletion was requested: until
// its finalizers are removed, or until its containers have stopped.
func (c *Child) Slow() bool { return c.Finalized || c.Kind == "Pod" }

// former returns an earlier version of the child. nil means that none is known.
func (s *Store) former(c *Child) *entry {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.all.known(c.Key, c.UID)
}

// update stores a child from a watch event. It returns the uids of the owners for which
// that is a change. Changes of managedFields that keep the stamp are none.
func (s *Store) update(c *Child, authoritative bool) (owners []string) {
	before := s.former(c)
	outdated := func() bool { return before != nil && !authoritative && !newer(c.packed, &before.packed) }
	if outdated() {
		return nil
	}
	unchanged := before != nil && before.owner == c.Owner && before.stamp == c.Stamp && before.applied == c.Applied && s.equal(before.child(), c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if now := s.all.known(c.Key, c.UID); now != before { // a response has replaced it
		before, unchanged = now, false
		if outdated() {
			return nil
		}
	}
	s.put(c)
	if during := s.sending[c.Key]; during != nil {
		during.newest = c
		return nil
	}
	if unchanged {
		return nil
	}
	if before != nil && before.owner != c.Owner {
		owners = append(owners, before.owner)
	}
	return append(owners, c.Owner)
}

// gone removes a child after its deletion event. It returns its owner; "" means
// that the event is outdated or the child unknown. An unknown version means that a list detected the
// deletion; mark is that of the list.
func (s *Store) gone(info kind.Info, id object.Identity, mark uint64) (owner string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	e := s.all.known(keyOf(info, id), id.UID)
	if e == nil {
		return ""
	}
	if _, versioned := id.Version(); versioned && e.packed.Newer(id) || !versioned && e.mark > mark {
		return ""
	}
	s.remove(e)
	if during := s.sending[e.key()]; during != nil {
		during.gone = id.UID
		return ""
	}
	return e.owner
}

// Add stores a child that was read outside of a watch. A plan fills its own store with it.
func (s *Store) Add(c *Child) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.put(c)
}

func (s *Store) put(c *Child) {
	if before := s.all.known(c.Key, c.UID); before != nil {
		s.remove(before)
	}
	s.all.add(entryOf(s.bounded(c)))
}

func (s *Store) remove(e *entry) {
	s.count(&e.packed, -1)
	s.all.remove(e)
}

// identities returns the known children of a kind in a namespace; "" means all.
func (s *Store) identities(info kind.Info, namespace string) iter.Seq[object.Identity] {
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []object.Identity
	apiVersion := info.APIVersion()
	for e := range s.all.each() {
		if k := e.key(); k.APIVersion == apiVersion && k.Kind == info.Kind && (namespace == "" || k.Namespace == namespace) {
			all = append(all, object.Identity{Namespace: k.Namespace, Name: k.Name, UID: e.packed.UID()})
		}
	}
	return func(yield func(object.Identity) bool) {
		for _, id := range all {
			if !yield(id) {
				return
			}
		}
	}
}

// newer reports whether a is a newer version of a child than b. Versions that are no
// numbers count as newer if they differ.
func newer(a, b *object.Packed) bool {
	x, okX := a.Version()
	y, okY := b.Version()
	if !okX || !okY {
		return !a.HasVersion(b.ResourceVersion())
	}
	return x > y
}

// equal reports whether two versions of a child differ only in the resource version.
func equal(a, b *Child) bool {
	return !a.hollow && !b.hollow && a.Body().SameContent(b.Body())
}
