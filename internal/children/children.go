// Package children decides about the children of an object: which of them must be
// created, changed, repaired, awaited or deleted. It is pure: package reconcile reads the
// live children and executes the decisions.
//
// The terms:
//
//   - desired child: a child that the reconcile handler declared in its last call.
//   - live child: a child as it is in the cluster.
//   - inventory: the stored list of the children of one object; see [Inventory].
//   - stamp: a hash of the operator's own managedFields entries of a child; see [Stamp].
//   - digest: a hash of the desired content of a child; see [Digest].
//   - wave: 0 for a child that depends on none, else one more than the highest wave of its
//     dependencies. Children are deleted in the order of descending waves.
package children

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"gopf.dev/gopf/internal/terminal"
)

// Key identifies a child by its kind and name.
type Key struct {
	APIVersion, Kind string
	Namespace        string // empty for cluster-scoped children
	Name             string
}

// String returns the child as in messages: "Deployment web". A name that is too long is cut.
func (k Key) String() string { return k.Kind + " " + terminal.Cut(k.Name, MaxName) }

// MaxName is the length of the longest name of an object, in bytes.
const MaxName = 253

// Problem returns an error if no object can have the key. A name may be a text of any length
// from the owner.
func (k Key) Problem() error {
	for _, name := range []string{k.Name, k.Namespace} {
		if len(name) > MaxName {
			return fmt.Errorf("the name %s has %d bytes, more than the limit of %d", terminal.Cut(name, 70), len(name), MaxName)
		}
	}
	if n := len(k.APIVersion) + len(k.Kind); n > 2*MaxName {
		return fmt.Errorf("the API version and the kind have %d bytes, more than the limit of %d", n, 2*MaxName)
	}
	return nil
}

// Clone returns a copy that does not keep the texts in memory of which the key is a part.
func (k Key) Clone() Key {
	return Key{strings.Clone(k.APIVersion), strings.Clone(k.Kind), strings.Clone(k.Namespace), strings.Clone(k.Name)}
}

// Desired is a declared child.
type Desired struct {
	Key
	Digest uint32
	Wave   int

	CreateOnly    bool // it is never changed after its creation
	AllowRecreate bool // it may be deleted and created again if an immutable field changes
	AdoptExisting bool // an existing object without a controller becomes this child
	PruneLast     bool // if it is no longer declared, it stays until all other children are ready
	Orphan        bool // it stays if it is no longer declared, or if its owner is deleted
	Outside       bool // it cannot have an owner reference to its owner
}

// Relation says to which owner a live object belongs.
type Relation int

// The relations.
const (
	Unowned   Relation = iota // no owner controls it
	Own                       // it is a child of this object
	OfAnother                 // another object controls it
)

// Live is the state of a child in the cluster. The zero value means that it does not
// exist.
type Live struct {
	Exists   bool
	UID      string
	Stamp    uint32
	Content  uint64 // 0 means that it is not known
	Digest   string // of the content that the operator applied last; "" means that it is not known
	Deleting bool
	Relation Relation
}

// Verb is the decision about one child.
type Verb int

// The verbs.
const (
	Keep   Verb = iota // nothing to do
	Create             // the child does not exist
	Change             // its desired content has changed
	Repair             // another client changed or deleted it
	Wait               // it cannot be created or changed yet
	Refuse             // an object of that name exists, and it is not a child of this object
	Delete             // it is no longer declared
)

func (v Verb) String() string {
	return [...]string{"keep", "create", "change", "repair", "wait", "refuse", "delete"}[v]
}

// Action is the decision about one child, with its reason.
type Action struct {
	Key
	Verb   Verb
	Reason string // empty for Keep
}

// Decide decides about a desired child. known is its entry in the inventory; nil means
// none. waiting names a dependency that is not ready; "" means that all are ready. A
// repair does not wait for dependencies.
func Decide(d Desired, live Live, known *Entry, waiting string) Action {
	act := func(v Verb, format string, args ...any) Action {
		return Action{Key: d.Key, Verb: v, Reason: fmt.Sprintf(format, args...)}
	}
	same := known != nil && known.Digest == d.Digest
	switch {
	case live.Exists && live.Relation == OfAnother:
		return act(Refuse, "another object controls %s", d.Key)
	case live.Exists && live.Relation == Unowned && !d.AdoptExisting:
		return act(Refuse, "%s exists and is not a child of this object; use AdoptExisting to take it over", d.Key)
	case live.Deleting:
		return act(Wait, "%s is being deleted", d.Key)
	case !live.Exists && same && !d.CreateOnly:
		return act(Repair, "%s was deleted", d.Key)
	case !live.Exists && waiting != "":
		return act(Wait, "%s waits for %s", d.Key, waiting)
	case !live.Exists:
		return act(Create, "%s does not exist", d.Key)
	case d.CreateOnly:
		return Action{Key: d.Key}
	case same && live.Digest != "" && live.Digest != DigestText(d.Digest):
		// The operator applied other content within the same second, and crashed before it
		// saved the inventory. Times in managedFields have no fractions.
		return act(Change, "%s has other content than the operator noted", d.Key)
	case same && live.Stamp == known.Stamp && sameUID(known.UID, live.UID) && (known.Content == 0 || known.Content == live.Content):
		return Action{Key: d.Key}
	case same:
		return act(Repair, "another client changed %s", d.Key)
	case waiting != "":
		return act(Wait, "%s waits for %s", d.Key, waiting)
	}
	return act(Change, "the desired content of %s has changed", d.Key)
}

// Prune returns the entries to delete now: of those that are not desired and still exist,
// the ones of the highest wave. Entries marked as last wait until all others are ready.
// rest has the entries that must stay in the inventory because they are not deleted yet.
func Prune(known []Entry, desired []Desired, exists func(Entry) bool, allReady bool) (now, rest []Entry) {
	wanted := map[Key]bool{}
	for _, d := range desired {
		wanted[d.Key] = true
	}
	var left []Entry
	for _, e := range known {
		switch {
		case wanted[e.Key] || e.Orphan || !exists(e):
		case e.Last && !allReady:
			rest = append(rest, e)
		default:
			left = append(left, e)
		}
	}
	now, later := highestWave(left)
	return now, append(rest, later...)
}

// highestWave divides entries into those of the highest wave and the others.
func highestWave(all []Entry) (highest, others []Entry) {
	if len(all) == 0 {
		return nil, nil
	}
	top := slices.MaxFunc(all, func(a, b Entry) int { return cmp.Compare(a.Wave, b.Wave) }).Wave
	for _, e := range all {
		if e.Wave == top {
			highest = append(highest, e)
		} else {
			others = append(others, e)
		}
	}
	return highest, others
}

// NeedsFinalizer reports whether the deletion of the owner must wait for the children:
// because they are deleted in waves, or because the garbage collector cannot delete them.
func NeedsFinalizer(entries []Entry) bool {
	return slices.ContainsFunc(entries, func(e Entry) bool { return !e.Orphan && (e.Wave > 0 || e.Outside) })
}

// sameUID reports whether a stored prefix of a uid belongs to the uid.
func sameUID(prefix, uid string) bool { return prefix != "" && prefix == Short(uid) }

// Short returns the part of a uid that an inventory keeps.
func Short(uid string) string {
	short := make([]byte, 0, 8)
	for i := 0; i < len(uid) && len(short) < 8; i++ {
		if c := uid[i]; c >= '0' && c <= '9' || c >= 'a' && c <= 'f' {
			short = append(short, c)
		}
	}
	return string(short)
}
