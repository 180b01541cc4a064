// Package stream makes one endless stream of events of lists and watches of
// one resource, in one namespace or in all of them.
//
// # Flow
//
//  1. List: as a watch that begins with all objects, where the server can do
//     that, else in pages. Every object is delivered as Listed.
//  2. Tombstones for objects that were known and are not there any more, then
//     Synced.
//  3. Watch from there; after any disconnection go on from the last version.
//  4. When the server does not have that version any more: all over again.
//
// What is created during a long list need not wait for its end: see
// [Config.Newcomers].
//
// # Guarantees
//
// Nothing that a server or a connection does ends a stream; all errors are
// logged, reported through [Config.Status], and tried again with pauses of at
// most [Config.MaxBackoff]. No change of an object is missed for good, except
// for intermediate states while the stream is disconnected for too long to
// resume. Deletions that happened meanwhile are delivered as tombstones.
//
// # Caveats
//
// An object may be delivered again with the same version, e.g. by a re-list.
package stream

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Type is what an event says about its object.
type Type int

// The types of events.
const (
	Listed   Type = iota + 1 // it exists; its version may be lower than one seen before
	Added                    // it was created
	Modified                 // it was changed
	Deleted                  // it exists no more
	Synced                   // no object: all existing ones were listed
)

func (t Type) String() string {
	switch t {
	case Listed:
		return "LISTED"
	case Added:
		return "ADDED"
	case Modified:
		return "MODIFIED"
	case Deleted:
		return "DELETED"
	case Synced:
		return "SYNCED"
	}
	return "UNKNOWN"
}

// Event is something that happened to an object.
type Event struct {
	Type Type
	Body *object.Body // nil only for Synced

	// Missed marks a deletion that was noticed by its result. The body is a
	// tombstone: type, namespace, name and uid, no version.
	Missed bool

	// Mark is the value of the counter in [Shared] when a watch event arrived; of a
	// list item or tombstone, when the first request of its list was sent.
	Mark uint64

	// Authoritative marks items of the first list after the server's versions went
	// back: they replace whatever was known before the list began.
	Authoritative bool
}

// Config says what to follow and how. Begin with [DefaultConfig]: here zero
// means zero, not the default.
type Config struct {
	Info      kind.Info
	Namespace string // "" for all namespaces, and for cluster-scoped resources
	Selector  string // of labels, as kubectl takes it
	Fields    string // a selector of fields, where the resource has them

	// ProbeAfter is the silence of a watch after which it is probed: another watch on
	// another connection asks whether there is something that it should have
	// delivered. The same silence is probed again at most once a minute.
	// Default: 10s. 0 means never.
	ProbeAfter time.Duration

	// InactivityTimeout is the silence after which a watch is replaced; the
	// server's bookmarks, about one a minute, break the silence. 70 s; 0 is
	// never.
	InactivityTimeout time.Duration

	// ServerTimeout is after how long the server is asked to end a watch, and
	// ClientTimeout after how long we do. 0, the default, leaves it to the
	// server, or never does it.
	ServerTimeout, ClientTimeout time.Duration

	// ReconnectBackoff is the first pause between attempts that fail, doubled
	// up to MaxBackoff with each. 100 ms and 5 s.
	ReconnectBackoff, MaxBackoff time.Duration

	// Known, if set, tells which objects the receiver believes to exist, so
	// that it can be told of those that do not. Everything delivered counts
	// from the moment that deliver returns. It is asked at the beginning of
	// each list, from the goroutine of Run.
	Known func() iter.Seq[object.Identity]

	// Newcomers, if set, is told of objects that are created while a long list is
	// being delivered, ahead of it: of their creation, changes and deletion, from
	// another goroutine than that of Run, one at a time. It must not wait. What it
	// does not take comes behind the list, what it takes does not come again. No
	// object has events from both goroutines at the same time.
	Newcomers func(Event) (taken bool)

	// Status, if set, is told how the stream is doing whenever that changes,
	// from the goroutine of Run.
	Status func(Status)

	// Signs, if set, is told of signs of life, from the goroutine of Run. It must
	// be quick.
	Signs func(Sign)

	// Shared is what this stream has in common with the others of the API server and
	// the process. nil means that there are no others.
	Shared *Shared

	Log *slog.Logger // slog.Default
}

// Sign is a sign of life of a stream.
type Sign int

// The signs.
const (
	Moved    Sign = iota // it does something, if only to try again
	Heard                // the server said something: an object, a bookmark, that a watch has begun
	Resumed              // a watch went on from where the one before had ended
	Relisted             // everything is listed again because a watch could not go on
)

func (c *Config) sign(s Sign) {
	if c.Signs != nil {
		c.Signs(s)
	}
}

// DefaultConfig has the defaults named at the fields.
func DefaultConfig(info kind.Info, namespace string) Config {
	return Config{
		Info:              info,
		Namespace:         namespace,
		ProbeAfter:        10 * time.Second,
		InactivityTimeout: 70 * time.Second,
		ReconnectBackoff:  100 * time.Millisecond,
		MaxBackoff:        5 * time.Second,
		Log:               slog.Default(),
	}
}

// Stream follows one resource.
type Stream struct {
	Config
	client *kube.Client
	jitter func(time.Duration) time.Duration
}

// New makes a stream; Run starts it.
func New(client *kube.Client, cfg Config) *Stream {
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	if cfg.Shared == nil {
		cfg.Shared = &Shared{}
	}
	cfg.Log = cfg.Log.With("resource", cfg.Info.String())
	if cfg.Namespace != "" {
		cfg.Log = cfg.Log.With("namespace", cfg.Namespace)
	}
	// A stream has pauses of its own, shorter than those of requests.
	return &Stream{Config: cfg, client: client.WithBackoffs(nil), jitter: func(d time.Duration) time.Duration {
		return client.Jitter().Shorten(d, jitter.Strong)
	}}
}

// Run delivers events until ctx is done, and returns why it is. Every Run
// begins with a list. The function is called from this goroutine, one event at
// a time; while it blocks nothing is read, and silence is not counted. It must
// return when ctx is done.
func (s *Stream) Run(ctx context.Context, deliver func(Event)) error {
	r := &run{
		Stream:  s,
		deliver: deliver,
		pause:   backoff{base: s.ReconnectBackoff, most: s.MaxBackoff, jitter: s.jitter},
		health:  health{cfg: &s.Config},
		early:   newcomers{tell: s.Newcomers},
		of:      s.Info.GVR().GroupResource(),
		epoch:   s.Shared.currentEpoch(),
	}
	r.relists = r.pause
	defer s.Shared.ended(s)
	defer r.early.close()
	for ctx.Err() == nil {
		r.sign(Moved)
		end := r.turn(ctx)
		if ctx.Err() != nil {
			break
		}
		if err := r.settle(ctx, end); err != nil {
			break
		}
	}
	return context.Cause(ctx)
}
