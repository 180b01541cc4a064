// Package stream combines lists and watches of one resource, in one namespace or in
// all, into an endless stream of events.
//
// # Flow
//
//  1. List: as a watch that starts with all objects where the server supports
//     that, else in pages. Every object is delivered as [kube.Listed].
//  2. Deliver tombstones for known objects that no longer exist, then Synced.
//  3. Watch from there. After a disconnection, resume from the last version.
//  4. If the server no longer has that version, start over.
//
// Objects that are created during a long list do not wait for its end: see
// [Config.Newcomers].
//
// # Guarantees
//
// No error of a server or a connection ends a stream. All errors are logged, reported
// through [Config.Status], and retried with pauses of at most [Config.MaxBackoff]. The
// stream delivers every change, except for intermediate states while it was
// disconnected for too long to resume. Deletions that happened meanwhile are delivered
// as tombstones.
//
// # Caveats
//
// An object may be delivered again with the same version, for example by a relist.
package stream

import (
	"context"
	"iter"
	"log/slog"
	"time"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

// Synced is the type of the event after the last list item. It has no object.
const Synced kube.EventType = "SYNCED"

// Event is a change of an object, a list item, or the end of a list.
type Event struct {
	Type kube.EventType // Listed, Added, Modified, Deleted or Synced
	Body *object.Body   // nil only for Synced

	// Missed marks a deletion that the watch did not report. The body is a tombstone:
	// type, namespace, name and uid, but no version.
	Missed bool

	// Mark is [Shared.Mark] when a watch event arrived. For a list item or tombstone,
	// it is the mark before the first request of the list.
	Mark uint64

	// Namespaces are the namespaces that a complete list covered, if the stream has a
	// scope. It is set only for Synced.
	Namespaces []string

	// Authoritative marks items of the first list after the server's versions went
	// back. They replace everything known before the list started.
	Authoritative bool
}

// Config configures a stream. Start with [DefaultConfig]: a zero field means zero, not
// the default.
type Config struct {
	Info      kind.Info
	Namespace string // empty for all namespaces and for cluster-scoped resources
	Selector  string // label selector, in kubectl's syntax
	Fields    string // field selector, where the resource supports it

	// Scope limits a stream of all namespaces to some of them. nil means no limit.
	Scope *Scope

	// Share lets the watches share connections with other watches. It saves memory if
	// there are many streams.
	Share bool

	// ProbeAfter is the silence of a watch after which it is probed: a second watch on
	// another connection checks for events that the first should have delivered. The
	// same silence is probed at most once per minute. Default: 10s. 0 means never.
	ProbeAfter time.Duration

	// InactivityTimeout is the silence after which a watch is replaced. Bookmarks,
	// about one per minute, end a silence. Default: 70s. 0 means never.
	InactivityTimeout time.Duration

	// ServerTimeout is the time after which the server should close a watch; 0 means
	// the server's default. ClientTimeout is the time after which the stream closes it;
	// 0 means never. Default: 0.
	ServerTimeout, ClientTimeout time.Duration

	// ReconnectBackoff is the first pause between failed attempts. It doubles with each
	// attempt, up to MaxBackoff. Default: 100ms and 5s.
	ReconnectBackoff, MaxBackoff time.Duration

	// Known returns the objects that the receiver believes to exist. The stream
	// delivers deletions of those that no longer do. An object must be included once
	// deliver has returned for it. It is called at the start of each list from the
	// goroutine of Run. May be nil.
	Known func() iter.Seq[object.Identity]

	// Newcomers receives the events of objects that are created while a long list is
	// being delivered, ahead of the list: their creation, changes and deletion. It is
	// called from another goroutine than that of Run, one event at a time, and must not
	// block. Events that it does not take are delivered after the list; events that it
	// takes are not delivered again. An object never has events from both goroutines at
	// the same time. May be nil.
	Newcomers func(Event) (taken bool)

	// Status is called when the status of the stream changes, from the goroutine of
	// Run. May be nil.
	Status func(Status)

	// Signs is called for signs of life, from the goroutine of Run. It must not block.
	// May be nil.
	Signs func(Sign)

	// Shared is the state shared with the other streams of the API server. nil means
	// that there are no others.
	Shared *Shared

	Log *slog.Logger // Default: slog.Default().
}

// Sign is a sign of life of a stream.
type Sign int

// Signs of life.
const (
	Moved    Sign = iota // the stream makes progress, or at least retries
	Heard                // the server sent an object, a bookmark, or the start of a watch
	Resumed              // a watch resumed where the previous one ended
	Relisted             // everything is listed again because a watch could not resume
)

func (c *Config) sign(s Sign) {
	if c.Signs != nil {
		c.Signs(s)
	}
}

// DefaultConfig returns the defaults that are documented at the fields.
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

// Stream is an endless stream of the events of one resource.
type Stream struct {
	Config
	client *kube.Client
	jitter func(time.Duration) time.Duration
}

// New returns a stream. Run starts it.
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
	// A stream has its own pauses, which are shorter than those of requests.
	return &Stream{Config: cfg, client: client.WithBackoffs(nil), jitter: func(d time.Duration) time.Duration {
		return client.Jitter().Shorten(d, jitter.Strong)
	}}
}

// Run delivers events until ctx is done, and returns its cause. Every Run starts with a
// list. deliver is called from this goroutine, one event at a time. While it blocks,
// nothing is read, and silence is not counted. It must return when ctx is done. With a
// scope, another goroutine calls it for the objects of added namespaces, but never at the
// same time.
func (s *Stream) Run(ctx context.Context, deliver func(Event)) error {
	r := &run{
		Stream:  s,
		deliver: s.Scope.filter(deliver),
		admit:   deliver,
		pause:   pauses{Backoff: backoff.Backoff{First: s.ReconnectBackoff, Most: s.MaxBackoff}, jitter: s.jitter},
		health:  health{cfg: &s.Config},
		early:   newcomers{tell: s.Newcomers},
		of:      s.Info.GVR().GroupResource(),
		epoch:   s.Shared.currentEpoch(),

		delivering: make(chan struct{}, 1),
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
