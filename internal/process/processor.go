// Package process handles objects. One turn takes one object from its newest
// known state to a state in which no handler is due.
//
// The code reads in the order in which a turn runs:
//
//  1. [Processor.Turn] (turn.go) updates the indexes and calls the event handlers
//     (observe.go). It then chooses the newest known state of the object.
//  2. change (change.go) is the main loop. One iteration is a pass: begin, prepare,
//     write, and next (next.go), which decides how the turn continues.
//  3. prepare derives a view from the state (view.go), starts and stops daemons,
//     and calls decide (decide.go). decide adds or removes the finalizer, or it
//     opens a handling (handling.go) and runs the handlers that are due (handle.go).
//  4. save (pass.go) puts the outcomes into the change. write sends the change
//     (send.go); todo.go covers changes that need more than one request.
//  5. schedule (schedule.go) sets the alarm for the next turn, if one is needed.
//  6. reconcile (reconcile.go) calls the reconcile handlers that are due, has their children
//     applied, and writes conditions (conditions.go) and inventories.
//
// [Processor.TurnIfSettled] (settled.go) replaces a turn if the bytes of the object
// show that nothing is due. [Memory] remains between turns.
//
// The terms:
//
//   - turn: one run of the processor over one object, with one or more passes.
//   - pass: one iteration; handlers are called once, and one change is written.
//   - view: one version of an object plus everything derived from it, such as the cause.
//   - handling: the work on one cause. It may take many turns until all handlers finish.
//   - change: everything that one pass writes to the object.
//   - part: the patch that one handler requested, with its result.
//   - record: the stored progress of one handler.
//   - note: the stored state of a handling as a whole; see [progress.Note].
//   - base: the last-handled configuration.
//   - traces: the operator's finalizer and annotations on an object; see neighbors.go.
//   - mark: a number that orders lists, watch events and writes; see [Event.Mark].
package process

import (
	"context"
	"hash/maphash"
	"log/slog"
	"math"
	"sync"
	"sync/atomic"
	"time"
	"unique"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf/internal/apply"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/jitter"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/internal/recorder"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/storage"
)

// Processor runs the turns of all objects of one resource. Turns of different
// objects may run concurrently; those of one object must not.
type Processor struct {
	Resource  kind.Info
	Handlers  handler.Set      // change handlers
	Watchers  handler.Set      // event handlers
	Daemons   *daemon.Set      // daemons and timers; nil means none
	Indexers  *index.Indexers  // nil means none
	Reconcile *Reconcile       // reconcile handlers; nil means none
	Fields    []jsonvalue.Path // fields of handlers; they count as changes even outside of the essence
	Config    Config
	API       apply.API
	Log       *slog.Logger

	// Post queues a Kubernetes event and does not block. Handlers post events of
	// level PostFrom or higher.
	Post     func(recorder.Event)
	PostFrom slog.Level
	// PostLog is the logger of change handlers, daemons and timers if log lines are
	// posted as Kubernetes events. nil means that they are not posted.
	PostLog *slog.Logger
	// Cluster gives handlers access to the API.
	Cluster handler.API
	// Observe is called after each handler call. May be nil.
	Observe execute.Observer
	// Trail receives the steps of all objects. nil means that there are no timelines.
	Trail Trail
	// Entrance limits the calls of change handlers and event handlers. May be nil.
	Entrance *execute.Entrance
	// Aside runs a blocking call for an object without occupying an active slot: other objects
	// proceed meanwhile. nil means that slots are unlimited.
	Aside func(body *object.Body, call func())
	// Inside runs a part of a call of Aside in an active slot. nil means that slots are
	// unlimited.
	Inside func(body *object.Body, part func())
	// Alarm schedules another turn of the object. It replaces an earlier alarm.
	Alarm func(key string, at time.Time)
	// Mark returns the next value of the counter that also numbers lists and watch
	// events; see [Event.Mark]. nil means that list items never replace newer states.
	Mark func() uint64
	// Room limits the memory for children and sub-handlers of all calls. nil means no limit.
	Room Room
	// Outages limits log lines about failures of the API server. May be nil.
	Outages *kube.Outages
	// Heavy limits concurrent writes to large objects. May be nil.
	Heavy *HeavyWrites
	// Stopping is closed when the operator stops. No new work may start then.
	Stopping <-chan struct{}
	// Paused reports whether the operator is paused. nil means never.
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

	// HandedOver reports whether another operator owns the object: it gets no changes
	// then. nil means never.
	HandedOver func(*object.Body) bool
	// Left reports whether the object has left the selection of the operator, which then
	// releases it, even if it is paused. nil means never.
	Left func(*object.Body) bool

	// Spaces has the pauses of namespaces. May be nil.
	Spaces *Spaces

	bytesTestOnce sync.Once
	bytesTest     bytesTest
	elsewhere     atomic.Bool // the progress storage was found to store nothing on objects
	prefixesOnce  sync.Once
	prefixList    []string         // see prefixes
	tracedKeys    []string         // keys of the status with state; set together with prefixList
	seed          maphash.Seed     // of the hashes of traces
	limiter       loglimit.Limiter // limits the log lines that any editor of an object can cause
	paused        atomic.Int64     // the number of paused objects
	pauseLines    loglimit.Bucket  // limits the log lines about pauses
}

// Config configures the handling of objects. All resources of an operator share it.
type Config struct {
	Progress       storage.Progress
	Base           storage.Base
	Finalizer      string
	Former         []string // former names of the finalizer: they count, and Finalizer replaces them
	Lifecycle      handler.Lifecycle
	DefaultBackoff time.Duration
	ErrorDelays    []time.Duration // backoff after framework errors; the last one repeats
	Jitter         jitter.Source   // shortens ErrorDelays, never the delays of handlers; nil means exact delays
	WriteGrace     time.Duration   // time to record outcomes after the handlers' context is canceled
	PlainSecrets   bool            // store values of Secrets in plain text rather than as digests
	SecretKey      []byte          // the key of the digests; nil means that they are salted with the uid only
	TrustCopies    bool            // use state that was stored for another object
	// KeepsStatus reports whether the schema of the resource keeps all fields of a merge
	// patch of the status. nil means that it is not known.
	KeepsStatus func(status map[string]any) bool
	// OpenStatus means that clients may write the status without a permission for it: another
	// served version of the resource has no status subresource. So records in the status are no
	// proof that the operator has written them.
	OpenStatus bool
	Webhooks   string // the name of the operator's webhook configurations; "" means none

	// Begin is called at the beginning of each turn, and the returned function at its end.
	// The returned context is that of the turn. nil means that turns are not observed.
	Begin func(ctx context.Context, of kind.Info, m *Memory, why Occasion) (context.Context, func())
}

// Memory is the state of one object between its turns. It is kept small: every
// object that the operator serves has one.
type Memory struct {
	names     string // the uid and the name: one string takes less memory than two
	namespace unique.Handle[string]
	version   uint64 // the newest version that was acted on; see [Memory.acted]
	mark      uint64 // the mark of the last write, watch event or list; see [Event.Mark]
	watched   uint64 // bit set of the event handlers that matched the last event
	wroteIn   uint32 // the number of pauses before the last write, or before the creation
	facts     facts
	uid       uint16 // the length of the uid in names
	listed    bool   // the first version that was acted on was a list item
	handled   bool   // this process has completed a handling of the object
	unchecked bool   // the last write has no verified result yet
	responded bool   // our own last write returned this version
	ended     bool   // the object is gone, but its deletion event has not arrived yet
	undone    uint8  // how often another client removed state that was stored on the object

	rare    *rare                         // nil means that all of it is empty
	daemons atomic.Pointer[daemon.Object] // nil means no daemons and timers
	memos   handler.Memos
	busy    *pending // nil means that the object is idle
}

// rare is the part of [Memory] that few objects have.
type rare struct {
	witness *witness // nil means that the traces on the object are not known
	version string   // the newest version that was acted on, if it is not a number
	owner   *owner   // the state of reconcile handlers; nil means none
	seen    seenEssence
	loaded  loadedRecords // only during a turn
}

// witnessed returns the expected traces. nil means that they are not known.
func (m *Memory) witnessed() *witness {
	if m.rare == nil {
		return nil
	}
	return m.rare.witness
}

func (m *Memory) setWitness(w *witness) {
	switch {
	case m.rare == nil && w != nil:
		m.rare = &rare{witness: w}
	case m.rare != nil && w == nil && m.rare.owner == nil && m.rare.seen.id == "" && m.rare.version == "":
		m.rare = nil
	case m.rare != nil:
		m.rare.witness = w
	}
}

// owner returns the state of reconcile handlers. nil means none.
func (m *Memory) owner() *owner {
	if m.rare == nil {
		return nil
	}
	return m.rare.owner
}

func (m *Memory) own(o *owner) {
	if m.rare == nil {
		m.rare = &rare{}
	}
	m.rare.owner = o
}

// facts is a set of facts about an object. It is safe for concurrent use.
type facts struct{ set atomic.Uint32 }

const (
	reportedMalformed uint32 = 1 << iota // malformed state was logged
	reportedCopy                         // that the object is a copy was logged
	reportedCost                         // an expensive turn was logged
	forgotten                            // the object is deleted or no longer served, but a turn may be running
	isPaused                             // the object was found paused
	guarded                              // this process has added the finalizer
)

// first adds a fact. It reports whether the fact is new.
func (f *facts) first(fact uint32) bool { return f.set.Or(fact)&fact == 0 }

// drop removes a fact. It reports whether it was there.
func (f *facts) drop(fact uint32) bool { return f.set.And(^fact)&fact != 0 }

// has reports whether a fact was added.
func (f *facts) has(fact uint32) bool { return f.set.Load()&fact != 0 }

// pending is the part of [Memory] that exists only while something is due later.
type pending struct {
	body     *object.Body // the newest known state
	asked    unwritten    // changes that handlers requested and that are not written yet
	wake     *Wake        // a request to call delayed handlers that is not served yet
	failures int          // consecutive errors of the framework
	failure  error        // the last of these errors
	until    time.Time    // the end of the backoff after the last error
	alarm    time.Time    // the time of the next turn; zero means none

	unsaved *change   // its handlers have run, but the storage has not accepted their outcomes
	unsent  *change   // a change that could not be written yet
	refused *handling // the handling whose records the API server refused; may be nil
	fresh   bool      // the object has changed since the last attempt to write

	todo *todo // the changes stored in the note; nil means none or not loaded

	// postponed has the handlers that must not be called before a moment that is
	// not recorded on the object.
	postponed map[string]time.Time
	delays    progress.Delays // when recorded delays end by the monotonic clock

	misfits map[string]misfit // the last logged misfits, by the id of the handler
}

// misfit is the state of an object that did not fit the Go type of a handler.
type misfit struct {
	reason  cause.Reason
	essence string // its digest
	text    string // of the error
}

// NewMemory returns the memory of an object that was not seen before this event.
func NewMemory(e *Event) *Memory { return memoryOf(e.Body.Identity, e.Listed()) }

// memoryOf returns the memory of an object that was not seen before. listed reports whether
// it is an item of a list.
func memoryOf(id object.Identity, listed bool) *Memory {
	length := min(len(id.UID), math.MaxUint16)
	return &Memory{names: id.UID[:length] + id.Name, uid: uint16(length), namespace: unique.Make(id.Namespace), listed: listed}
}

// UID returns the uid of the object.
func (m *Memory) UID() string { return m.names[:m.uid] }

// key returns the key of the object. It is part of the text of the memory, if possible: what keeps
// it needs no copy.
func (m *Memory) key(body *object.Body) string {
	if key := body.Key(); key != m.UID() {
		return key
	}
	return m.UID()
}

// Name returns the name of the object.
func (m *Memory) Name() string { return m.names[m.uid:] }

// Namespace returns the namespace of the object; "" means that it is cluster-scoped.
func (m *Memory) Namespace() string { return m.namespace.Value() }

// aside runs a call that may block; see [Processor.Aside].
func (p *Processor) aside(body *object.Body, fn func()) {
	if p.Aside == nil {
		fn()
		return
	}
	p.Aside(body, fn)
}

// inside runs a part of a call of aside in an active slot; see [Processor.Inside].
func (p *Processor) inside(body *object.Body, fn func()) {
	if p.Inside == nil {
		fn()
		return
	}
	p.Inside(body, fn)
}

// pend returns the pending work of the object, and creates it if necessary.
func (m *Memory) pend() *pending {
	if m.busy == nil {
		m.busy = &pending{}
	}
	return m.busy
}

// Memos returns the values that handlers keep with the object.
func (m *Memory) Memos() *handler.Memos { return &m.memos }

// Waiting reports whether something is due later. The object's bytes are kept until then.
func (m *Memory) Waiting() bool { return m.busy != nil }

// Released reports whether nothing is left to do for an object that matches no handler: no
// write is pending, and no daemon is running. Daemons that have exited on their own do not count.
func (m *Memory) Released() bool {
	running, _ := m.daemons.Load().IDs()
	return m.busy == nil && len(running) == 0
}

// Ended reports whether the object seems to be gone, although no event has shown it.
func (m *Memory) Ended() bool { return m.ended }

// Pending returns the state that is kept because something is due later. nil means that
// nothing is. It must not be called during a turn of the object by another goroutine.
func (m *Memory) Pending() *object.Body {
	if m.busy == nil {
		return nil
	}
	return m.busy.body
}

// Burden estimates the memory that a turn of the object needs for changes that handlers requested
// earlier, in bytes. The condition of [Memory.Pending] applies.
func (m *Memory) Burden() int {
	if m.busy == nil {
		return 0
	}
	return m.busy.asked.memory()
}

// Forget stops the daemons and timers of an object that is deleted or no longer served.
// A running turn starts no others, and leaves no entries in the indices. It is safe for
// concurrent use.
func (m *Memory) Forget(why error) {
	m.facts.first(forgotten) // before the next line: a turn stores its daemons, and then checks this
	m.daemons.Load().Forget(why)
}

// poster returns a function that posts Kubernetes events about the object.
func (p *Processor) poster(b *object.Body) func(kind, reason, message string) {
	return func(kind, reason, message string) {
		if p.Trail != nil {
			p.Trail.Posted(b.UID, reason, message)
		}
		about := b.Identity
		about.APIVersion, about.Kind = p.Resource.APIVersion(), p.Resource.Kind
		p.Post(recorder.Event{About: about, Type: kind, Reason: reason, Message: message})
	}
}

// Logger returns a logger that adds the object to all lines.
func (p *Processor) Logger(b *object.Body) *slog.Logger { return p.attach(p.Log, b) }

// handlerLogger returns the logger of change handlers, daemons and timers. log is the
// logger of the object.
func (p *Processor) handlerLogger(b *object.Body, log *slog.Logger) *slog.Logger {
	if p.PostLog == nil {
		return log
	}
	return p.attach(p.PostLog, b)
}

func (p *Processor) attach(log *slog.Logger, b *object.Body) *slog.Logger {
	return slog.New(&objectLog{to: log.Handler(), kind: p, body: b})
}
