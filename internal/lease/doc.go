// Package lease implements leader election: at most one of several replicas works.
//
// # Flow
//
//  1. Candidates read a Lease of coordination.k8s.io. A candidate that finds it
//     free or expired writes itself into it. The write requires the resource
//     version that was read: of two concurrent writes, one fails.
//  2. The leader renews the lease every RetryPeriod. It may write until
//     [Elector.Until], which counts from when the last successful renewal was
//     sent.
//  3. If the leader cannot renew the lease in time, its work is canceled. It
//     becomes a candidate again when the work has ended.
//  4. At shutdown, the leader ends its work first and renews the lease until
//     then, to allow the last writes. Then it releases the lease, and the other
//     replicas, which watch it, take over at once.
//
// The record has the format and meaning of client-go's leader election: replicas of
// both kinds exclude each other.
//
// # Guarantees
//
// No two electors may write at the same time. Candidates count the lease duration from
// when they see a renewal, which is after it was sent, and the duration is longer than
// the time that the leader allows itself. Clocks of different machines are never
// compared.
//
// # Assumptions
//
// Clocks run at about the same speed on all machines. The leader's code calls Until
// before each write and ends the request by that time. No user or client deletes the
// Lease or edits its holder while a leader works: to a candidate that has not seen the
// lease before, it is free. Identities are unique. If two processes share one, the
// second waits like any other. A leader with another configuration, or of another
// library, gives up within ten minutes without a renewal: candidates do not believe longer
// durations, unless their own is longer than a minute. Then they believe ten times their own.
//
// # Caveats
//
// A write that was sent in time may be applied late, after a takeover, if the network
// delays it for the rest of the lease duration.
package lease
