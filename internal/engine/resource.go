package engine

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"gopf.dev/gopf/internal/discovery"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/internal/stream"
)

// resource is one served kind of objects: its watches, the turns of its objects, and
// their memories.
type resource struct {
	config Config
	client *kube.Client
	kind   *process.Processor
	budget *queue.Budget // for costly turns; shared by all resources
	modest *queue.Budget // for modest turns; shared by all resources
	served discovery.Served
	vitals *vitals
	counts *metrics.Resource // nil means that metrics are disabled
	queue  *queue.Queue[string, entry]
	put    func(key string, e entry)
	offer  func(key string, e entry) (taken bool)
	take   func(e *process.Event) (taken bool) // handles an event without a turn; see [resource.skim]
	gate   *index.Gate
	cancel context.CancelCauseFunc // of handlers
	ending *crew                   // of watches that are shutting down; shared by all resources
	paused *atomic.Bool            // the operator is paused; shared by all resources
	pauses atomic.Uint32           // the number of pauses so far; events from before the last one are dropped

	// indexOnly means that the watches only fill indices, and no handler is called.
	indexOnly atomic.Bool

	// Guarded by server.mu while the resource is in server.resources.
	places   map[string]bool   // the served namespaces, even during a pause
	streams  map[string]func() // functions that end the watches, by namespace; they may be called twice
	widening bool              // the watches are being restarted; see [server.widen]

	active sync.Map // maps the keys of objects in a turn to their [*process.Memory]
	costly sync.Map // maps the keys of modest and costly objects to the cost of a turn

	mu       sync.Mutex
	memories map[string]*process.Memory
	named    map[string]string // keys by namespace/name; nil until the first lookup
	shared   map[string]bool   // names of several objects, of which at most one exists
	gone     gone
	left     map[string]bool  // namespaces that are no longer served
	missed   map[string]entry // turns that were due during a pause, by key
	unlisted map[string]bool  // namespaces that were not listed since the last pause; "" means all
}

// entry holds the reasons of a turn; there may be several.
type entry struct {
	event *process.Event
	wake  *process.Wake
	alarm bool
	hurry bool   // skip the backoff after an error
	since uint32 // of the event: the number of pauses before its watch started
	shed  int    // the cost of the turn, if the event has only the identity; see [resource.shed]

	namespace string // of the object, if it is known; namespaces take turns
}

// activeTurns limits the concurrent turns of a resource that execute framework code or
// write to the API. Turns whose handlers are running do not count. A higher limit
// would only cost memory, because the client limits the requests in flight.
const activeTurns = 64

// open creates the queue. work is the parent of the contexts of all turns.
func (r *resource) open(work context.Context) {
	r.memories = map[string]*process.Memory{}
	r.queue = queue.New(queue.Config[string, entry]{
		Turn: r.turn, Add: r.add, Merge: r.merge, Shed: r.shed, Weigh: weigh, Urgent: urgent, Limit: r.config.Backlog, Workers: r.config.WorkerLimit, Active: activeTurns,
		Cost: r.cost, Budget: r.budget, CostlyLimit: costlyBacklog, Large: costlyTurn, Modest: r.modest, Group: func(_ string, e entry) string { return e.namespace },
	})
	r.kind.Aside = r.queue.Aside
	r.put = func(key string, e entry) { r.queue.Put(work, key, r.placed(key, e)) }
	r.offer = func(key string, e entry) bool { return r.queue.Offer(work, key, r.placed(key, e)) }
	r.take = func(e *process.Event) bool { // with work: index functions outlive their watch
		if r.indexOnly.Load() {
			r.index(work, e) // synchronously: after the last list item, the index is complete
			return true
		}
		return r.skim(work, e)
	}
}

// placed returns the entry with the namespace of its object.
func (r *resource) placed(key string, e entry) entry {
	if e.event != nil {
		e.namespace = e.event.Body.Namespace
		return e
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if m := r.memories[key]; m != nil {
		e.namespace = m.Namespace
	}
	return e
}

// close ends the watches and waits for the running turns.
func (r *resource) close() {
	var turns sync.WaitGroup
	turns.Go(r.queue.Close) // this releases watches that wait for room in the queue
	r.unfollow()
	turns.Wait()
}

// serves reports whether the resource can stay as it is: it has the same handlers,
// scope and label selector, and the status subresource has not come or gone.
func (r *resource) serves(now discovery.Served) bool {
	return r.served.Info.HasStatus() == now.Info.HasStatus() && r.served.Info.Namespaced == now.Info.Namespaced &&
		r.served.Select == now.Select && slices.Equal(r.served.Handlers, now.Handlers)
}

// settle sets the served namespaces. It ends the watches of the others, and drops their
// objects. Cluster-scoped resources ignore the argument. It starts no watches; see
// [resource.follow].
func (r *resource) settle(namespaces map[string]bool) {
	if !r.kind.Resource.Namespaced {
		namespaces = map[string]bool{"": true}
	}
	for namespace := range r.places {
		if namespaces[namespace] {
			continue
		}
		end := r.streams[namespace]
		delete(r.places, namespace)
		delete(r.streams, namespace)
		r.gate.Drop(r.source(namespace))
		r.setLeft(namespace, true)
		r.ending.Go(func() {
			if end != nil { // nil during a pause
				end()
			}
			r.forgetNamespace(namespace)
		})
	}
	for namespace := range namespaces {
		if r.places[namespace] {
			continue
		}
		r.places[namespace] = true
		if r.indexOnly.Load() {
			r.gate.Expect(r.source(namespace))
		}
		r.setLeft(namespace, false)
	}
}

// follow starts the missing watches.
func (r *resource) follow(ctx context.Context) {
	for namespace := range r.places {
		if r.streams[namespace] == nil {
			r.streams[namespace] = r.start(ctx, namespace)
		}
	}
}

// start starts the watch of a namespace. end stops it and waits for its goroutine; it
// may be called twice.
func (r *resource) start(ctx context.Context, namespace string) (end func()) {
	ctx, cancel := context.WithCancel(ctx)
	config := r.config.Stream
	config.Info, config.Namespace, config.Log = r.kind.Resource, namespace, r.config.Log
	config.Known = func() iter.Seq[object.Identity] { return r.known(namespace) }
	pulse, over := r.vitals.follow(&config, r.counts)
	pauses := r.pauses.Load()
	config.Newcomers = func(e stream.Event) (taken bool) {
		if taken = r.hasten(e, pauses); taken {
			pulse.count(e)
		}
		return taken
	}
	s := stream.New(r.client, config)
	var done sync.WaitGroup
	done.Go(func() {
		defer over()
		_ = s.Run(ctx, func(e stream.Event) {
			pulse.deliver(e, func(e stream.Event) { r.deliver(namespace, e, pauses) })
		})
	})
	return func() { cancel(); done.Wait() }
}

// deliver handles or queues an event of a watch. since is the number of pauses before
// the watch started. If there was another pause, the watch is about to end, and its
// events are dropped: the next watch lists all objects again.
func (r *resource) deliver(namespace string, e stream.Event, since uint32) {
	if e.Body != nil && !r.isServed(e.Body) || since != r.pauses.Load() {
		return
	}
	event := eventOf(e)
	switch {
	case e.Type == stream.Synced:
		r.gate.Synced(r.source(namespace))
		r.catchUp(namespace, since)
	case r.take(event):
	default:
		r.put(e.Body.Key(), entry{event: event, since: since})
	}
}

// hasten handles or queues a watch event ahead of a list that is still being delivered.
// It returns false if the queue is full or only indices are being filled. The watch
// then delivers the event after the list.
func (r *resource) hasten(e stream.Event, since uint32) (taken bool) {
	if r.indexOnly.Load() || !r.isServed(e.Body) || since != r.pauses.Load() {
		return false
	}
	event := eventOf(e)
	return r.take(event) || r.offer(e.Body.Key(), entry{event: event, since: since})
}

func eventOf(e stream.Event) *process.Event {
	event := &process.Event{Body: e.Body, Missed: e.Missed, Mark: e.Mark}
	switch e.Type {
	case stream.Added, stream.Modified, stream.Deleted:
		event.Type = e.Type.String()
	case stream.Listed:
		event.List, event.Authoritative = e.Mark, e.Authoritative
	}
	return event
}

// isServed reports whether an object is in the served scope. Only Namespace objects may
// be outside: their names must match the patterns.
func (r *resource) isServed(b *object.Body) bool {
	patterns := r.config.Namespaces
	if len(patterns) == 0 || r.kind.Resource.Group != "" || r.kind.Resource.Plural != "namespaces" {
		return true
	}
	return patterns.Match(b.Name)
}

// source returns the name of a watch for the index barrier and its log lines.
func (r *resource) source(namespace string) string {
	if namespace == "" {
		return r.kind.Resource.String()
	}
	return r.kind.Resource.String() + " in " + namespace
}

// index updates the indices for an event and calls no other handler.
func (r *resource) index(ctx context.Context, event *process.Event) {
	key := event.Body.Key()
	if m := r.recall(key, entry{event: event}); m != nil && r.kind.Index(ctx, m, event) {
		r.forget(key, m, event)
	}
}

// hasOthers reports whether there are handlers other than index functions.
func (r *resource) hasOthers() bool {
	return len(r.kind.Handlers)+len(r.kind.Watchers) > 0 || r.kind.Daemons != nil
}

// unfollow ends all watches and waits for them.
func (r *resource) unfollow() {
	for namespace, end := range r.streams {
		delete(r.streams, namespace)
		end()
	}
}

// ring queues a turn because the alarm of the object is due.
func (r *resource) ring(key string) { r.put(key, entry{alarm: true}) }

// wake queues a turn that calls delayed handlers now. It ignores unknown objects. A nil
// w means that the resource has none of the handlers.
func (r *resource) wake(namespace, name string, w *process.Wake) {
	if w == nil {
		return
	}
	r.mu.Lock()
	key := r.find(namespace + "/" + name)
	r.mu.Unlock()
	if key != "" {
		r.put(key, entry{wake: w})
	}
}

// wakeOwner queues a turn that calls all delayed handlers of an object now, if it can own
// objects in the namespace.
func (r *resource) wakeOwner(namespace, uid string) {
	r.mu.Lock()
	m := r.memories[uid]
	r.mu.Unlock()
	if m != nil && (m.Namespace == "" || m.Namespace == namespace) {
		r.put(uid, entry{wake: r.kind.Waking(nil)})
	}
}

// turn runs a turn of one object, or keeps it for the end of the pause.
func (r *resource) turn(ctx context.Context, key string, e entry) {
	if e.shed > 0 && e.event != nil {
		expected := e.shed
		if e = r.reread(ctx, e); e.event != nil && costOf(e.event.Body) > expected {
			r.put(key, e) // its turn starts when there is memory for it
			return
		}
	}
	if e, now := r.isNow(key, e); now {
		r.turnNow(ctx, key, e)
	}
}

func (r *resource) turnNow(ctx context.Context, key string, e entry) {
	m := r.recall(key, e)
	if m == nil {
		return // the object is deleted or unknown
	}
	if e.event != nil {
		r.noteCost(key, e.event.Body)
	}
	r.active.Store(key, m)
	defer r.active.Delete(key)
	if r.kind.Turn(ctx, m, process.Occasion{Event: e.event, Wake: e.wake, Alarm: e.alarm, Hurry: e.hurry}) {
		r.forget(key, m, e.event)
		return
	}
	r.noteCost(key, m.Pending()) // it may have grown during the turn
}

// running returns the names of the objects in a turn.
func (r *resource) running() []string {
	var names []string
	r.active.Range(func(_, memory any) bool {
		m := memory.(*process.Memory)
		names = append(names, m.Namespace+"/"+m.Name)
		return true
	})
	return names
}

// add appends an entry to the queued ones of an object, or merges it with the last.
// Change handlers need only the newest state, so the newer of two queued events
// replaces the older one. With event handlers, all events stay. Deletions are never
// replaced or dropped.
func (r *resource) add(waiting []entry, e entry) []entry {
	return r.join(waiting, e, len(r.kind.Watchers) > 0)
}

// merge is add for an object whose handlers take so long that too many events wait for
// them: then only the newest state stays, even with event handlers.
func (r *resource) merge(waiting []entry, e entry) []entry { return r.join(waiting, e, false) }

// join implements add and merge. every means that all events stay.
func (r *resource) join(waiting []entry, e entry, every bool) []entry {
	e = r.fresh(e)
	if len(waiting) == 0 {
		return append(waiting, e)
	}
	last := &waiting[len(waiting)-1]
	e = e.join(*last)
	switch {
	case e.event == nil: // the queued entry leads to a turn in any case
		last.wake, last.alarm, last.hurry = e.wake, e.alarm, e.hurry
	case last.event == nil || e.event.Gone() && len(r.kind.Watchers) == 0:
		*last = e
	case last.event.Gone() || e.event.Gone() || every && last.shed == 0:
		return append(waiting, e)
	default:
		before := *last
		*last = e
		if last.event = before.event.Join(e.event); last.event.Body == before.event.Body {
			last.shed = before.shed
		}
	}
	return waiting
}

// urgent reports whether an entry goes ahead of list items. At startup, long lists are
// queued, and users wait for the effects of live events.
func urgent(e entry) bool { return e.event == nil || !e.event.Listed() }

// weigh returns the size of an entry in bytes, for the limit of the backlog.
func weigh(e entry) int {
	if e.event == nil || e.shed > 0 {
		return 0
	}
	return e.event.Body.Size()
}
