package controller

import (
	"context"
	"maps"
	"slices"
	"time"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
)

// activeTurns limits the concurrent turns of a resource in one namespace that execute
// framework code or write to the API; see [queue.Config]. Turns whose handlers are running do
// not count. More turns would mostly wait for their requests: each with its decoded object, which
// the garbage collector marks in every cycle, and with a separate connection. 64 instead of 32
// took a tenth more CPU time for a storm of new objects, and were slower.
const activeTurns = 32

// listPatience is the time for which list items wait in a full queue. Then those of the
// namespace that has filled it are queued without their content: slow handlers of one namespace
// must not delay the rest of the list, and the events behind it, for others.
const listPatience = time.Second

// open creates the queue. work is the parent of the contexts of all turns.
func (c *Controller) open(work context.Context) {
	c.memories = map[string]*process.Memory{}
	if len(c.config.Namespaces) > 0 && c.served.Info.Namespaced {
		c.members = members{}
	}
	c.queue = queue.New(queue.Config[string, entry]{
		Turn: c.turn, Follow: c.follow, Add: c.add, Merge: c.merge, Shed: c.shed, Keeps: keeps, SpareLimit: packedBacklog, Backlog: c.config.Waiting, Weigh: weigh, Urgent: urgent, Limit: c.config.Backlog, Workers: c.config.WorkerLimit, Active: activeTurns, Crowd: c.config.Crowd, Patience: listPatience,
		Cost: c.cost, Budget: c.config.Budget, CostlyLimit: costlyBacklog, Large: costlyTurn, Modest: c.config.Modest,
		Group: func(_ string, e entry) string { return e.namespace },
	})
	c.processor.Aside, c.processor.Inside, c.processor.Room = c.aside, c.inside, c.callRoom
	c.put = func(key string, e entry) { c.queue.Put(work, key, c.placed(key, e)) }
	c.offer = func(key string, e entry) bool { return c.queue.Offer(work, key, c.placed(key, e)) }
	c.take = func(e *process.Event) bool { // with work: index functions outlive their watch
		if c.indexOnly.Load() {
			c.index(work, e) // synchronously: after the last list item, the index is complete
			return true
		}
		return c.skim(work, e)
	}
}

// placed returns the entry with the namespace of its object.
func (c *Controller) placed(key string, e entry) entry {
	if e.event != nil {
		e.namespace = e.event.Body.Namespace
		return e
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if m := c.memories[key]; m != nil {
		e.namespace = m.Namespace()
	}
	return e
}

// Appointment is an object that needs a turn at a set time.
type Appointment struct {
	controller *Controller
	key        string
}

// Clock rings when the delayed turns of objects are due.
type Clock = alarm.Clock[Appointment]

// NewClock returns the clock that all controllers of an operator share.
func NewClock() *Clock {
	return alarm.New(func(a Appointment) { a.controller.ring(a.key) })
}

// setAlarm is the [process.Processor.Alarm] of the controller. It does nothing for an object that
// is deleted or no longer served, even if one of its turns is still running: tenants choose the
// time of an alarm, and it may be thousands of years away.
func (c *Controller) setAlarm(key string, at time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.memories[key] != nil {
		c.config.Clock.Set(Appointment{c, key}, at)
	}
}

// ring queues a turn because the alarm of the object is due.
func (c *Controller) ring(key string) { c.put(key, entry{alarm: true}) }

// Revisit queues a turn of all objects of a namespace with pending work, daemons or timers:
// its pause has started or ended.
func (c *Controller) Revisit(namespace string) {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.within(namespace)))
	c.mu.Unlock()
	for _, key := range keys {
		c.ring(key)
	}
}

// Wake queues a turn that calls delayed handlers of an object now. No ids means all
// handlers. Unknown objects and handlers are ignored.
func (c *Controller) Wake(namespace, name string, ids []string) {
	w := c.processor.Waking(ids)
	if w == nil { // none of the handlers is here
		return
	}
	c.mu.Lock()
	key := c.find(namespace + "/" + name)
	c.mu.Unlock()
	if key != "" {
		c.put(key, entry{wake: w})
	}
}

// WakeOwner queues a turn that calls all delayed handlers of an object now, if it can own
// objects in the namespace.
func (c *Controller) WakeOwner(namespace, uid string) {
	c.mu.Lock()
	m := c.memories[uid]
	c.mu.Unlock()
	if m != nil && (m.Namespace() == "" || m.Namespace() == namespace) {
		c.put(uid, entry{wake: c.processor.Waking(nil)})
	}
}

// Hurry ends the error backoff of all objects.
func (c *Controller) Hurry() {
	c.mu.Lock()
	keys := slices.Collect(maps.Keys(c.memories))
	c.mu.Unlock()
	for _, key := range keys {
		c.put(key, entry{hurry: true})
	}
}

// turn runs a turn of one object, or keeps it for the end of the pause.
func (c *Controller) turn(ctx context.Context, key string, e entry) {
	expected := c.cost(key, e)
	if e.shed > 0 && e.event != nil && !e.event.Gone() {
		e = c.restore(ctx, e)
	}
	if e.event != nil {
		e.event.Body.Measure()
		if c.costOf(e.event.Body) > expected {
			c.queue.Again(key, e) // its turn starts when there is memory for it
			return
		}
	}
	e, now := c.isNow(key, e)
	if now && e.event != nil && e.event.Gone() && c.mayHaveLeft(key) {
		before := e
		if e, now = c.resolve(ctx, key, e); now && e.left {
			e.event.Body.Measure()
			if cost := c.costOf(e.event.Body); cost > expected {
				before.shed = cost // the object is read again when there is memory for it
				c.queue.Again(key, before)
				return
			}
		}
	}
	if now {
		c.turnNow(ctx, key, e)
	}
}

func (c *Controller) turnNow(ctx context.Context, key string, e entry) {
	m := c.recall(key, e)
	if m == nil {
		return // the object is deleted or unknown
	}
	if e.event != nil {
		c.noteCost(key, e.event.Body, m.Burden())
	}
	ctx = kube.For(ctx, m.Namespace())
	if e.event == nil && e.alarm && c.hasVanished(ctx, key, m) {
		c.part(key, m)
		return
	}
	c.active.Store(key, m)
	defer c.active.Delete(key)
	if c.processor.Turn(ctx, m, process.Occasion{Event: e.event, Wake: e.wake, Alarm: e.alarm, Hurry: e.hurry}) {
		c.forget(key, m, e.event)
		return
	}
	c.noteCost(key, m.Pending(), m.Burden()) // it may have grown during the turn
	if c.isLeaving(key) && m.Released() || m.Ended() && c.hasVanished(ctx, key, m) {
		c.part(key, m)
	}
}

// index updates the indices for an event and calls no other handler.
func (c *Controller) index(ctx context.Context, event *process.Event) {
	key := event.Body.Key()
	m := c.recall(key, entry{event: event})
	if m == nil {
		return // the object is deleted
	}
	before, _ := c.indexed.Load(key)
	version, _ := before.(string)
	version, gone := c.processor.Index(ctx, m, event, version)
	c.indexed.Store(key, version)
	if gone {
		c.forget(key, m, event)
	}
}

// Running returns the names of the objects in a turn.
func (c *Controller) Running() []string {
	var names []string
	c.active.Range(func(_, memory any) bool {
		m := memory.(*process.Memory)
		names = append(names, m.Namespace()+"/"+m.Name())
		return true
	})
	return names
}
