package engine

import (
	"context"
	"iter"
	"slices"
	"sync"
	"sync/atomic"

	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/metrics"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/observe"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
	"gopf.dev/gopf/internal/stream"
)

// resource is one kind of objects being served: its streams, the turns of its
// objects, and what is remembered of them.
type resource struct {
	config Config
	client *kube.Client
	kind   *process.Processor
	budget *queue.Budget // shared by all resources
	served observe.Served
	vitals *vitals
	counts *metrics.Resource // nil if nobody asks for them
	queue  *queue.Queue[string, entry]
	put    func(key string, e entry)
	offer  func(key string, e entry) (taken bool)
	take   func(e *process.Event) (taken bool) // without a turn of its own; see [resource.skim]
	gate   *index.Gate
	cancel context.CancelCauseFunc // of handlers
	ending *crew                   // of streams that were told to end
	paused *atomic.Bool            // nothing is to be handled now
	pauses atomic.Uint32           // how many pauses there were; events from before the last one are dropped

	// indexOnly tells that nothing but indices is to be filled yet.
	indexOnly atomic.Bool

	// Guarded by the server, as long as that knows the resource.
	places   map[string]bool   // the namespaces that are served, also in pauses
	streams  map[string]func() // how to end them, by namespace; they do not mind being told twice
	widening bool              // they end, and are to be begun anew

	active sync.Map // keys of objects whose turn it is, to their names
	costly sync.Map // keys of objects whose turns take much memory, to how much

	mu       sync.Mutex
	memories map[string]*process.Memory
	named    map[string]string // keys by namespace/name; nil until somebody asks
	shared   map[string]bool   // names by which there are several objects, all but one of them gone
	gone     gone
	left     map[string]bool  // namespaces that are not served anymore
	missed   map[string]entry // turns that fell into a pause, by key
	unlisted map[string]bool  // namespaces that were not listed yet since the last pause; "" for all
}

// entry is a reason for a turn, or several.
type entry struct {
	event *process.Event
	wake  *process.Wake
	alarm bool
	hurry bool   // do not wait out the pause after an error
	since uint32 // of the event: the number of pauses before its stream began
}

// activeTurns is how many objects of a resource are being looked at or written
// at the same time, beside any number of those whose handlers are running. More
// than requests may be under way would only need memory.
const activeTurns = 64

func (r *resource) open(work context.Context) {
	r.memories = map[string]*process.Memory{}
	r.queue = queue.New(queue.Config[string, entry]{
		Turn: r.turn, Add: r.add, Weigh: weigh, Urgent: urgent, Limit: r.config.Backlog, Workers: r.config.WorkerLimit, Active: activeTurns,
		Cost: r.cost, Budget: r.budget, CostlyLimit: costlyBacklog,
	})
	r.kind.Aside = r.queue.Aside
	r.put = func(key string, e entry) { r.queue.Put(work, key, e) }
	r.offer = func(key string, e entry) bool { return r.queue.Offer(work, key, e) }
	r.take = func(e *process.Event) bool { // the end of a stream is no reason to interrupt index functions
		if r.indexOnly.Load() {
			r.index(work, e) // at once: when all are delivered, all are indexed
			return true
		}
		return r.skim(work, e)
	}
}

// close ends the streams and waits for the turns that are running.
func (r *resource) close() {
	var turns sync.WaitGroup
	turns.Go(r.queue.Close) // streams that wait for room go on
	r.unfollow()
	turns.Wait()
}

// serves tells whether the resource is served as it is now: with the same
// handlers, and with the same endpoint for its status.
func (r *resource) serves(now observe.Served) bool {
	return r.served.Info.HasStatus() == now.Info.HasStatus() && r.served.Info.Namespaced == now.Info.Namespaced &&
		r.served.Select == now.Select && slices.Equal(r.served.Handlers, now.Handlers)
}

// settle makes the places be the namespaces. Cluster-scoped objects are in
// none.
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
			if end != nil { // otherwise there is a pause
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

// follow begins the streams that are missing.
func (r *resource) follow(ctx context.Context) {
	for namespace := range r.places {
		if r.streams[namespace] == nil {
			r.streams[namespace] = r.start(ctx, namespace)
		}
	}
}

// start begins a stream and returns what ends it.
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

// deliver takes an event of a stream that began after so many pauses. If there
// was another pause since, the stream is about to end, and its events are
// dropped: the next one lists all objects again.
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

// hasten takes what a stream tells ahead of a long listing, unless there is no
// room even for news, or nobody waits for them yet: then they come behind it.
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

// isServed tells whether an object belongs to what is served: of namespaces as
// objects, only those do whose own names match.
func (r *resource) isServed(b *object.Body) bool {
	patterns := r.config.Namespaces
	if len(patterns) == 0 || r.kind.Resource.Group != "" || r.kind.Resource.Plural != "namespaces" {
		return true
	}
	return patterns.Match(b.Name)
}

// source is the name of a stream in messages.
func (r *resource) source(namespace string) string {
	if namespace == "" {
		return r.kind.Resource.String()
	}
	return r.kind.Resource.String() + " in " + namespace
}

// index only fills indices with an object.
func (r *resource) index(ctx context.Context, event *process.Event) {
	key := event.Body.Key()
	if m := r.recall(key, entry{event: event}); m != nil && r.kind.Index(ctx, m, event) {
		r.forget(key, m, event)
	}
}

// hasOthers tells whether there are handlers besides those that fill indices.
func (r *resource) hasOthers() bool {
	return len(r.kind.Handlers)+len(r.kind.Watchers) > 0 || r.kind.Daemons != nil
}

// unfollow ends all streams, to be begun anew.
func (r *resource) unfollow() {
	for namespace, end := range r.streams {
		delete(r.streams, namespace)
		end()
	}
}

// ring gives an object a turn because its alarm has come.
func (r *resource) ring(key string) { r.put(key, entry{alarm: true}) }

// wake gives an object a turn because its delayed handlers are to be called now.
// nil means that the resource has none of the handlers.
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

// turn gives one object its turn.
func (r *resource) turn(ctx context.Context, key string, e entry) {
	if e, now := r.isNow(key, e); now {
		r.turnNow(ctx, key, e)
	}
}

func (r *resource) turnNow(ctx context.Context, key string, e entry) {
	m := r.recall(key, e)
	if m == nil {
		return // it is about an object that is gone
	}
	r.noteCost(key, e)
	r.active.Store(key, m.Namespace+"/"+m.Name)
	defer r.active.Delete(key)
	if r.kind.Turn(ctx, m, process.Occasion{Event: e.event, Wake: e.wake, Alarm: e.alarm, Hurry: e.hurry}) {
		r.forget(key, m, e.event)
	}
}

// running are the names of the objects whose turn it is.
func (r *resource) running() []string {
	var names []string
	r.active.Range(func(_, name any) bool {
		names = append(names, name.(string))
		return true
	})
	return names
}

// add appends an entry to those that wait, or merges it with the last of them.
// Change handlers need only the newest state of an object, so of two waiting events
// the newer one stays, unless there are event handlers. Deletions are never
// replaced and never dropped.
func (r *resource) add(waiting []entry, e entry) []entry {
	e = r.fresh(e)
	if len(waiting) == 0 {
		return append(waiting, e)
	}
	last := &waiting[len(waiting)-1]
	e = e.join(*last)
	switch {
	case e.event == nil: // whatever waits makes for a turn anyway
		last.wake, last.alarm, last.hurry = e.wake, e.alarm, e.hurry
	case last.event == nil || e.event.Gone() && len(r.kind.Watchers) == 0:
		*last = e
	case last.event.Gone() || len(r.kind.Watchers) > 0:
		return append(waiting, e)
	default:
		e.event = last.event.Join(e.event)
		*last = e
	}
	return waiting
}

// urgent tells news from what a listing brings: there is a lot of the latter when
// the operator starts, and nobody waits for it.
func urgent(e entry) bool { return e.event == nil || !e.event.Listed() }

func weigh(e entry) int {
	if e.event == nil {
		return 0
	}
	return e.event.Body.Size()
}
