// Package peering detects other operators that serve the same objects, and decides
// which of them must pause.
//
// # Flow
//
//  1. Every operator keeps a [Record] of itself in the status of a peering
//     object, whose name all of them share, and renews it in time.
//  2. Every operator watches that object and decides for itself ([Decide]): it
//     pauses while another operator with the same or a higher priority is alive.
//  3. When a record's lifetime ends, its operator counts as dead. Operators that
//     paused for it decide again at that moment, and the record is removed.
//  4. An operator that stops removes its record.
//
// The records have Kopf's format: operators of both frameworks pause for each other.
//
// # Guarantees
//
// No response of the API server ends a [Member], and neither does invalid data in the
// status. A record is removed only in the version in which it was seen to be expired:
// an operator that returns at that moment keeps its record.
//
// # Assumptions
//
// The clocks of all operators agree within a few seconds, because lifetimes count from
// the time that the record's owner has written. Identities are unique.
//
// # Caveats
//
// Peering is for people who work on a cluster next to a running operator. It is not a
// lock: two operators may work for a moment, until each has seen the other's record.
// See package lease for leader election.
package peering
