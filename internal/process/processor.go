// Package process handles objects: one turn takes one object from what is
// known of it to the patch that records what was done.
package process

import (
	"context"
	"hash/maphash"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/fieldpath"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/posting"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/registry"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Processor is what the turns of all objects of one resource share.
type Processor struct {
	Resource kind.Info
	Handlers registry.Set     // of changes
	Watchers registry.Set     // of events
	Daemons  *daemon.Set      // and timers; nil if there are none
	Indexers *index.Indexers  // nil if there are none
	Fields   []fieldpath.Path // what handlers are about, so that it counts as a change
	Config   Config
	API      apply.API
	Log      *slog.Logger

	// Post has a Kubernetes event posted; it does not wait. Handlers post by
	// themselves what is of the level at least.
	Post     func(posting.Event)
	PostFrom slog.Level
	// PostLog is the log for handlers of changes, daemons and timers, where events
	// are made of lines; nil if they are not.
	PostLog *slog.Logger
	// Cluster is how handlers reach the cluster.
	Cluster registry.API
	// Observe is told of calls of handlers; nil for nobody.
	Observe execute.Observer
	// Entrance is what calls of handlers of changes and events pass. May be nil.
	Entrance *execute.Entrance
	// Aside does what may take any time, and lets other objects have their turns
	// meanwhile; nil if they need not be let.
	Aside func(func())
	// Alarm makes the object get another turn at the moment, and at no other.
	Alarm func(key string, at time.Time)
	// Mark returns the next value of the counter that also numbers lists and watch
	// events; see [Event.Mark]. nil means that list items never replace newer states.
	Mark func() uint64
	// Outages limits log lines about failures of the API server. May be nil.
	Outages *kube.Outages
	// Stopping is closed when no new work is to be begun.
	Stopping <-chan struct{}
	// Paused tells that none is for now; nil for never.
	Paused func() bool
	// Pauses returns how many pauses there were so far. nil means none.
	Pauses func() uint32

	// Notices are shared by all kinds of an operator. nil means that none are logged.
	Notices *Notices

	// Managers reads the field managers of an object. nil means that they are not
	// known.
	Managers func(context.Context, kube.Target) ([]metav1.ManagedFieldsEntry, error)
	// Foreign is called when the operator's state on an object has changed without a
	// write of this process. May be nil.
	Foreign func()

	bytesTestOnce sync.Once
	bytesTest     bytesTest
	elsewhere     atomic.Bool // the progress storage was seen to keep nothing on objects
	prefixesOnce  sync.Once
	prefixList    []string     // see prefixes
	seed          maphash.Seed // of the hashes of marks
}

// Config is how objects are handled, whatever their resource.
type Config struct {
	Progress       storage.Progress
	Base           storage.Base
	Finalizer      string
	Lifecycle      registry.Lifecycle
	DefaultBackoff time.Duration
	ErrorDelays    []time.Duration // pauses after errors that are not the handlers'; the last repeats
	Jitter         jitter.Source   // shortens ErrorDelays, never the delays of handlers; nil means exact delays
	WriteGrace     time.Duration   // for recording outcomes after the handlers were cancelled
	PlainSecrets   bool            // keep the values of Secrets in plain rather than as digests
	SecretKey      []byte          // makes the digests; nil means that they are salted with the uid only
	TrustCopies    bool            // believe state that was stored for another object
	Webhooks       string          // the name of the operator's webhook configurations; "" for none
}

// Memory is what is kept of one object between its turns. It is small: there
// is one for every object of the cluster that is served.
type Memory struct {
	UID, Namespace, Name string

	version   string // the newest state that was acted on
	mark      uint64 // the last write, watch event or list of it; see [Event.Mark]
	listed    bool   // the first that was acted on came with a listing
	handled   bool   // this process has handled it completely once
	watched   uint64 // the event handlers, by their numbers, that matched last
	undone    uint8  // how many times what was stored on it was found removed
	guarded   bool   // this process has put the finalizer on it
	unchecked bool   // the result of the last write is not known yet
	responded bool   // the version is that of the server's response to our own last write
	ended     bool   // it exists no more, though the stream has not said so yet
	wroteIn   uint32 // the number of pauses before the last write, or before it was created

	malformed atomic.Bool // damaged state was reported
	copied    bool        // that it is a copy was reported
	costly    bool        // an expensive turn was reported

	witness *witness       // nil if nothing is known of the operator's marks on it
	daemons *daemon.Object // nil for objects without daemons and timers
	memos   registry.Memos
	busy    *pending // nil for objects with nothing to do
}

// business is what is kept only while there is something to do later.
type pending struct {
	body     *object.Body   // the newest known
	asked    []execute.Part // what event handlers asked for meanwhile
	wake     *Wake          // who asked for what is delayed meanwhile
	failures int            // errors of the framework in a row
	failure  error          // the last of them
	until    time.Time      // the pause after the last of them

	unsaved *change   // its handlers have run, but their storage did not take their outcomes yet
	unsent  *change   // what could not be written yet
	refused *handling // its records were refused by the API server; nil if they were not
	fresh   bool      // the object has changed since

	todo *todo // the changes that the note has; nil if none, or if they are not known yet

	// postponed are handlers that are not to be called before a moment of which
	// nothing is recorded.
	postponed map[string]time.Time
	delays    progress.Delays // when recorded delays end by the monotonic clock
}

// NewMemory begins to remember the object of an event.
func NewMemory(e *Event) *Memory {
	// All objects of a namespace share its name, and the two others need less in
	// one piece.
	namespace := unique.Make(e.Body.Namespace).Value()
	both, length := e.Body.UID+e.Body.Name, len(e.Body.UID)
	return &Memory{UID: both[:length], Namespace: namespace, Name: both[length:], listed: e.Listed()}
}

// aside does what may take any time.
func (p *Processor) aside(fn func()) {
	if p.Aside == nil {
		fn()
		return
	}
	p.Aside(fn)
}

func (m *Memory) pend() *pending {
	if m.busy == nil {
		m.busy = &pending{}
	}
	return m.busy
}

// Memos are what handlers keep with the object.
func (m *Memory) Memos() *registry.Memos { return &m.memos }

// Waiting tells whether the object's bytes are kept for something due later.
func (m *Memory) Waiting() bool { return m.busy != nil }

// Forget ends all that goes on beside the object, which is not served anymore.
func (m *Memory) Forget(why error) {
	m.daemons.Forget(why) // the field stays: a turn may be running
}

// poster posts events about the object.
func (p *Processor) poster(b *object.Body) func(kind, reason, message string) {
	about := b.Identity
	about.APIVersion, about.Kind = p.Resource.APIVersion(), p.Resource.Kind
	return func(kind, reason, message string) {
		p.Post(posting.Event{About: about, Type: kind, Reason: reason, Message: message})
	}
}

// Logger attaches the object to all lines about it.
func (p *Processor) Logger(b *object.Body) *slog.Logger { return p.attach(p.Log, b) }

// handlerLogger is what handlers of changes, daemons and timers log with.
func (p *Processor) handlerLogger(b *object.Body) *slog.Logger {
	if p.PostLog == nil {
		return p.Logger(b)
	}
	return p.attach(p.PostLog, b)
}

func (p *Processor) attach(log *slog.Logger, b *object.Body) *slog.Logger {
	return slog.New(&objectLog{log.Handler(), p, b})
}
