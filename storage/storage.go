// Package storage stores the state that an operator keeps about objects: the progress of
// each handler, and the base, which is the last-handled configuration of an object.
//
// The built-in storages store both on the objects themselves, in annotations or in the
// status, byte for byte as Kopf does. An operator written with either framework can
// therefore take over from the other at any time. To store state elsewhere, for example in
// a database, implement [Progress] and [Base]. Test your implementation by package
// storagetest.
//
// An essence is the part of an object whose changes are handled: everything except the
// status, the system's metadata, and the traces of operators.
package storage

import "context"

// Identity identifies an object.
type Identity struct {
	APIVersion string
	Kind       string
	Namespace  string // empty if the object is cluster-scoped
	Name       string
	UID        string // unique over time, unlike namespace and name
}

// Object is the object whose state is stored, as it was last seen.
type Object interface {
	Identity() Identity

	// Lookup returns the decoded JSON value at the path, a list of keys. A null is found.
	// A missing key, or a parent that is not an object, is not found. The value is shared,
	// and the caller must not change it.
	Lookup(path ...string) (any, bool)
}

// Patch is the merge patch (RFC 7386) for the object. It is sent at the end of the turn,
// with the changes of handlers and storages.
type Patch interface {
	// Set adds a value to the patch, with its parents. nil is sent as null, which deletes
	// the path from the object.
	Set(v any, path ...string)

	// Remove removes the path from the patch, and then the parents that are left empty. It
	// does not delete anything from the object. To do that, call Set with a nil value.
	Remove(path ...string)

	// Lookup returns the value of the patch at the path, as [Object].Lookup does.
	Lookup(path ...string) (any, bool)
}

// Progress stores the records of handlers, by their ids, until the handling of a change is
// complete.
//
// Calls for one object never overlap. Calls for different objects may be concurrent.
type Progress interface {
	// Load returns the existing records for the ids. Ids without a record are omitted.
	//
	// If some records are damaged, Load returns the others together with a
	// [*MalformedError] that lists the damaged ids. Only those count as absent: their
	// handlers start over, and Save replaces the records. Any other error means that the
	// storage is unavailable. The operator then calls no handler, and retries the object
	// later.
	Load(ctx context.Context, o Object, ids []string) (map[string]Record, error)

	// Save stores the changed records and deletes those in purge. An id in both is deleted.
	// Ids without a record are not an error. State on the object goes into the patch, which
	// is sent afterwards. State elsewhere must be durable when Save returns.
	Save(ctx context.Context, o Object, p Patch, changed map[string]Record, purge []string) error

	// Clean removes the storage's own traces from an essence, and nothing else. Otherwise
	// they would count as changes and become part of the base. A storage that writes
	// nothing to objects does nothing here.
	Clean(essence map[string]any)
}

// Base stores the essence of an object as of its last handling.
//
// Calls for one object never overlap. Calls for different objects may be concurrent.
type Base interface {
	// Load returns the essence that was saved last. found false means that the object was
	// never handled; an empty essence is found. A [*MalformedError] counts as not found.
	// After any other error, the operator retries the object later.
	Load(ctx context.Context, o Object) (essence map[string]any, found bool, err error)

	// Save stores the essence, which it must not change. See [Progress].Save for what goes
	// into the patch.
	Save(ctx context.Context, o Object, p Patch, essence map[string]any) error

	// Clean removes the storage's own traces from an essence; see [Progress].
	Clean(essence map[string]any)
}

// ObjectCleaner is implemented by base storages whose traces have different names on
// different objects. CleanObject is then called instead of Clean.
type ObjectCleaner interface {
	CleanObject(o Object, essence map[string]any)
}

// Untoucher is implemented by progress storages for objects that Kopf may have touched.
// Kopf wakes its delayed handlers by changing a dummy value on the object. Gopf does not,
// but removes the value.
type Untoucher interface {
	// Untouch adds the removal of this value to the patch, if the object has one. The
	// operator does not send a patch for this alone.
	Untouch(o Object, p Patch)
}

// Placed is implemented by progress storages that store all records on the objects. A
// storage that does not implement it may store them elsewhere. Then records and changes of
// the object are two writes: the records go first, together with the changes that are
// still to be sent. The same applies to records in the status, if the kind has a status
// subresource.
//
// A storage that keeps records where users may edit them, such as in annotations, must
// implement Placed and return false. Otherwise the operator sends changes that a user
// wrote into a record, with the operator's own permissions.
type Placed interface {
	// InStatus reports whether all new records go to the status.
	InStatus() bool
}

// Validator is implemented by storages that check their settings. The operator calls
// Validate once, before it starts.
type Validator interface {
	Validate() error
}

// IDChecker is implemented by progress storages that do not support all handler ids.
// CheckID returns an error if the id cannot be used.
type IDChecker interface {
	CheckID(id string) error
}
