// Package lease lets at most one of several replicas work.
//
// # Flow
//
//  1. Candidates read a Lease of coordination.k8s.io. Whoever finds it free, or
//     not renewed for as long as it says, writes itself into it. The write is
//     bound to the version that was read: of two, one fails.
//  2. The leader renews it every RetryPeriod. The time until which it may write
//     ([Elector.Until]) is counted from the moment when the last successful
//     renewal was sent.
//  3. If it cannot renew it in time, its work is cancelled, and it is a
//     candidate again when the work has ended.
//  4. When it stops, its work is ended first; until then the lease is renewed,
//     so that the last things can be written. Then the lease is released, and
//     the others, who watch it, take over at once.
//
// The record and its meaning are those of client-go's leader election:
// replicas of both kinds exclude each other.
//
// # Guarantees
//
// The times until which two electors may write never overlap: others count the
// lease's duration from when they have seen a renewal, which is after it was
// sent, and the duration is longer than the time that the leader gives itself.
// Clocks of different machines are never compared.
//
// # Assumptions
//
// Clocks run at about the same speed on all machines. Whoever works asks for
// Until before each write, and ends the request then at the latest. Nobody
// deletes the Lease or edits its holder while somebody works: to a candidate
// that has not seen it before, it is free. Identities are unique; where one is
// used twice, the second process waits like any other.
//
// # Caveats
//
// A write that was sent in time may be applied late, after somebody else has
// taken over, if it got stuck on its way for the rest of the duration.
package lease
