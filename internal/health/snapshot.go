// Package health tells whether an operator is alive and ready, in words, and
// serves that over HTTP.
//
// [Judge] is a pure function of what the operator knows about itself. [Server]
// is where it is asked: by Kubernetes, by people, by Prometheus.
package health

import "time"

// Snapshot is what an operator knows about itself at one moment.
type Snapshot struct {
	// Started is whether the startup handlers are done and the cluster was
	// discovered for the first time. Until then Starting, if not empty, says in
	// words what it is waiting for.
	Started  bool
	Starting string

	// Refused is since when the cluster refuses the credentials, and RefusedWhy
	// what it said. The zero time stands for credentials that are accepted.
	Refused    time.Time
	RefusedWhy error

	// Answered is when the API answered anything at all, on any connection: the
	// answer to a request, an error included, or something on a watch. The zero
	// time is never. Without recent answers a stuck operator cannot be told from
	// an outage and is not restarted, so an operator that has nothing to ask
	// should ask for something small before it judges itself.
	Answered time.Time

	// Streams are those that are meant to run.
	Streams []Stream

	// Inactivity is the silence after which a stream replaces its watch. With 0
	// it never does, and its silence means nothing.
	Inactivity time.Duration

	// Overdue is for how long the earliest alarm should have rung.
	Overdue time.Duration

	// Problems are what is declared and cannot be served, in words: resources
	// that are forbidden, missing or ambiguous.
	Problems []string

	// Neighbor says that another writer changes the operator's state on objects. Empty
	// if none was seen lately.
	Neighbor string

	// Idle is why the operator does nothing on purpose: paused by another one,
	// or standing by for it. Empty for an operator at work.
	Idle string

	// Reviews is how many admission reviews wait for capacity, and ReviewsSince when the
	// first of them began to wait.
	Reviews      int
	ReviewsSince time.Time

	// Strict makes an operator unready that cannot serve all that is declared.
	Strict bool
}

// Stream is one resource being followed, in one namespace or in all.
type Stream struct {
	Resource  string // as people name it, e.g. "kopfexamples.kopf.dev"
	Namespace string // "" for all namespaces, and for cluster-scoped resources

	State State
	Since time.Time // when it came into this state
	Err   error     // why it fails

	// Denied tells that it fails for a reason that neither time nor a restart
	// will cure: the resource is forbidden, or does not exist.
	Denied bool

	// Alive is when the server said anything on it: an object, a bookmark, a page
	// of a list, or that a watch has begun.
	Alive time.Time

	// Moved is when its loop did anything at all, attempts that failed included.
	Moved time.Time

	// Blocked is since when an event waits for room in the backlog, because
	// handlers are slower than events. The zero time is not at all.
	Blocked time.Time
}

// State is what a stream is doing.
type State string

// The states of a stream.
const (
	Listing  State = "listing"
	Watching State = "watching"
	Failing  State = "failing"
)
