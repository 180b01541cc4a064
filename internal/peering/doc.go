// Package peering finds out who else serves the same objects, and who of them
// must pause.
//
// # Flow
//
//  1. Every operator keeps a [Record] of itself in the status of a peering
//     object, which all of them agree on by its name, and renews it in time.
//  2. Every operator follows that object and decides for itself ([Decide]): it
//     pauses while somebody of a higher priority lives, or of the same one.
//  3. When a record's lifetime is over, its operator is taken for dead. Whoever
//     waits for it looks again in that moment, and the record is removed.
//  4. An operator that stops takes its record away.
//
// The records are those of Kopf: operators of both kinds pause for each other.
//
// # Guarantees
//
// Nothing that the API answers ends a [Member], nor does anything that others
// have written into the status. A record is removed only in the state in which
// it was seen to be dead: an operator that comes back in that moment keeps its
// record.
//
// # Assumptions
//
// The clocks of all operators agree up to a few seconds: lifetimes count from
// the time that the record's owner has written. Identities are unique.
//
// # Caveats
//
// Peering is for humans who want to work on a cluster beside a running
// operator. It is not a lock: for some moments, until each has seen the other's
// record, two operators may work. See the package lease for one.
package peering
