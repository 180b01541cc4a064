// Package health reports whether an operator is live and ready, as text and over HTTP.
//
// [Judge] is a pure function of the operator's state. [Server] serves the result to
// Kubernetes, users and Prometheus.
package health

import "time"

// Snapshot is the state of an operator at one moment.
type Snapshot struct {
	// Started is true when the startup handlers have finished and the first discovery
	// is complete. Until then, Starting describes the step that it waits for. It may be
	// empty.
	Started  bool
	Starting string

	// Refused is the time since which the API server rejects the credentials, and
	// RefusedWhy the error. Zero means that they are accepted.
	Refused    time.Time
	RefusedWhy error

	// Answered is the time of the last response on any connection: a response to a
	// request, including errors, or data on a watch. Zero means never. Without recent
	// responses a stuck operator cannot be distinguished from an outage and is not
	// restarted. An idle operator should therefore send a small request before it
	// judges itself.
	Answered time.Time

	// Streams are the streams that should be running.
	Streams []Stream

	// Inactivity is the silence after which a stream replaces its watch. 0 means never;
	// then the silence of a stream means nothing.
	Inactivity time.Duration

	// Overdue is the delay of the earliest alarm.
	Overdue time.Duration

	// Problems are declarations that cannot be served, as messages: forbidden, missing
	// or ambiguous resources.
	Problems []string

	// Neighbor describes another writer that changes the operator's state on objects.
	// Empty if there was none recently.
	Neighbor string

	// Idle is the reason why the operator is idle on purpose: paused by a peer, or on
	// standby. Empty if it works.
	Idle string

	// Reviews is the number of admission reviews that wait for capacity, and
	// ReviewsSince the time since which the first of them waits. Since ReviewsBlocked, a
	// review of any client would have waited; zero means that it would be handled.
	Reviews        int
	ReviewsSince   time.Time
	ReviewsBlocked time.Time

	// NoReviews is true if there are admission handlers, but the webhook server has not
	// started yet.
	NoReviews bool

	// Strict makes the operator unready if it cannot serve all declarations.
	Strict bool
}

// Stream is the state of a stream of one resource, in one namespace or in all.
type Stream struct {
	Resource  string // for users, e.g. "kopfexamples.kopf.dev"
	Namespace string // empty for all namespaces and for cluster-scoped resources

	State State
	Since time.Time // start of this state
	Err   error     // set if it fails

	// Denied is true if it fails for a reason that neither time nor a restart will fix:
	// the resource is forbidden or does not exist.
	Denied bool

	// Alive is the time of the last data from the server: an object, a bookmark, a page
	// of a list, or the start of a watch.
	Alive time.Time

	// Moved is the time of the last action of its loop, including failed attempts.
	Moved time.Time

	// Blocked is the time since which an event waits for room in the backlog, because
	// handlers are slower than events. Zero means that none waits.
	Blocked time.Time
}

// State is the state of a stream.
type State string

// States of a stream.
const (
	Listing  State = "listing"
	Watching State = "watching"
	Failing  State = "failing"
)
