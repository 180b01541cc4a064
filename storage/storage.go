// Package storage keeps what an operator must remember about objects: how far
// each handler has come (progress), and what an object was like when it was
// handled last (base).
//
// The built-in storages keep both on the objects themselves, in annotations or
// in the status, byte for byte as Kopf does: an operator written with either
// framework can take over from the other at any moment. Everything else, a
// database for example, is added by implementing [Progress] or [Base]; package
// storagetest has the tests that such a storage must pass.
//
// An "essence" is the part of an object whose changes are handled: all of it
// except the status, the system's metadata, and the traces of operators.
package storage

import "context"

// Identity tells which object is meant.
type Identity struct {
	APIVersion string
	Kind       string
	Namespace  string // empty for cluster-scoped objects
	Name       string
	UID        string // unique over time, unlike namespace and name
}

// Object is the object that something is remembered about, as it was last seen.
type Object interface {
	Identity() Identity

	// Lookup returns the decoded JSON value at the path, a list of keys. A null
	// is found, a missing key or a parent that is not an object is not.
	// The value is shared and must not be changed.
	Lookup(path ...string) (any, bool)
}

// Patch is the merge patch (RFC 7386) that will be sent for the object at the
// end of the turn, with everything that handlers and storages put there.
type Patch interface {
	// Set puts a value into the patch, and the parents that are missing. A nil
	// is sent as null, which deletes the path from the object.
	Set(v any, path ...string)

	// Remove takes the path out of the patch, and then the parents that are left
	// empty: the object keeps what it has there. It deletes nothing from the
	// object; that is Set with nil.
	Remove(path ...string)

	// Lookup returns what the patch has at the path, as [Object].Lookup does.
	Lookup(path ...string) (any, bool)
}

// Progress remembers what became of handlers, by their ids, until the handling
// of a change is over.
//
// Calls for one object never overlap; calls for different objects do.
type Progress interface {
	// Load returns the records that exist for the ids. An id without a record is
	// left out.
	//
	// If some records are damaged, Load returns the others together with a
	// [*MalformedError] that lists the ids of the damaged ones. Only those count as
	// absent: their handlers start over, and Save replaces the records. Any other
	// error means that the storage does not work now: the records are ignored,
	// no handler is called, and the object is tried again later.
	Load(ctx context.Context, o Object, ids []string) (map[string]Record, error)

	// Save keeps the changed records and forgets those in purge; an id in both
	// is forgotten. Ids without a record are no error. What is to be kept on the
	// object goes into the patch; what is kept elsewhere must be safely there
	// when Save returns, because the patch is sent after that.
	Save(ctx context.Context, o Object, p Patch, changed map[string]Record, purge []string) error

	// Clean removes the storage's own traces from an essence, and nothing else,
	// so that they neither count as changes nor become a part of the base.
	// A storage that leaves nothing on objects does nothing here.
	Clean(essence map[string]any)
}

// Base remembers the essence of an object as it was handled last.
//
// Calls for one object never overlap; calls for different objects do.
type Base interface {
	// Load returns the essence that was saved last. Not found means that the
	// object has never been handled; an empty essence is found. A
	// [*MalformedError] counts as not found. After any other error, the object is
	// tried again later.
	Load(ctx context.Context, o Object) (essence map[string]any, found bool, err error)

	// Save keeps the essence, which must not be changed. For where to, see
	// [Progress].Save.
	Save(ctx context.Context, o Object, p Patch, essence map[string]any) error

	// Clean removes the storage's own traces from an essence; see [Progress].
	Clean(essence map[string]any)
}

// ObjectCleaner is implemented by base storages whose traces have other names
// on some objects than on others: where it is, it is called instead of Clean.
type ObjectCleaner interface {
	CleanObject(o Object, essence map[string]any)
}

// Untoucher is implemented by progress storages of objects which Kopf may have
// touched. Kopf wakes its own delayed handlers by changing a meaningless value
// on the object; we do not, but remove what it has left.
type Untoucher interface {
	// Untouch adds to the patch the removal of such a value if the object has
	// one. It is not worth a patch of its own.
	Untouch(o Object, p Patch)
}

// StatusKeeper is implemented by progress storages that keep records in the status
// of objects. Where the status has an endpoint of its own, records and the rest of
// the object cannot be written in one request. The records are then written first,
// together with the changes that are still to be sent.
type StatusKeeper interface {
	// KeepsInStatus reports whether all new records go to the status.
	KeepsInStatus() bool
}

// Validator is implemented by storages that can be set up wrongly. It is asked
// once, before the operator starts.
type Validator interface {
	Validate() error
}

// IDChecker is implemented by progress storages that cannot keep records under
// every id.
type IDChecker interface {
	CheckID(id string) error
}
