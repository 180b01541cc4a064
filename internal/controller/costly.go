package controller

import (
	"context"
	"log/slog"
	"math"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/fields"

	"gopf.dev/gopf/internal/backoff"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/kube"
	"gopf.dev/gopf/internal/loglimit"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/queue"
)

// A turn of a large object needs several times the memory of the object. These limits
// apply to all such costly turns of the operator together. Turns of ordinary objects
// do not count and may overtake them.
const (
	// costlyTurns limits the estimated memory of concurrent costly turns, in bytes. One
	// of the largest possible objects fits.
	costlyTurns = 96 << 20
	// costlyTurn is the estimate in bytes from which a turn is costly.
	costlyTurn = 2 << 20
	// modestTurn is the estimate in bytes from which a turn is modest: it does not wait
	// for costly turns, which leave memory to it, but a namespace has only a part of the
	// memory for modest ones.
	// Otherwise slow handlers of many such objects would fill the memory.
	modestTurn = 128 << 10
	// modestTurns is the least limit of the estimated memory of concurrent modest turns,
	// in bytes, and maxModestTurns the highest; see [NewModestBudget].
	modestTurns    = 64 << 20
	maxModestTurns = 1 << 30
	// callMemory is about the memory of a running handler, in bytes, without its object. Small
	// objects cost nothing, but one event can start the handlers of all of them: of an object
	// that they refer to. So a namespace has an eighth of the memory limit for running
	// handlers, at least for leastCalls without their objects.
	callMemory = 48 << 10
	leastCalls = 256
	// declaringMemory is about the memory that a running reconcile handler takes beyond that, in
	// bytes: declared children for which it does not ask for memory (see package process), and the
	// desired states that are made of them.
	declaringMemory = 96 << 10
	// heldObject is the estimated memory of an object, in bytes, from which on it counts for
	// the limit of the objects of daemons. A daemon takes 21 KB without it.
	heldObject = 64 << 10
	// costlyBacklog limits the queued bytes of costly objects of one resource. More of
	// them are queued without their content, and read again when their turns start.
	costlyBacklog = 24 << 20
	// packedBacklog limits the compressed bytes of other objects of one resource that are
	// queued because their namespace has filled half of the backlog.
	packedBacklog = 8 << 20
	// maxAllTurns is the highest limit of the estimated memory of all turns, in bytes.
	maxAllTurns = math.MaxInt / 2
	// costlyPatience is the time after which another costly turn starts although none
	// has ended. Otherwise slow handlers would block all large objects.
	costlyPatience = 10 * time.Second
	// costlyGrace is the time after which namespaces without a costly turn get one at a time. It
	// must be short: slow handlers of one namespace can take all memory of costly turns.
	costlyGrace = 2 * time.Second
	// copies is the number of decoded copies in a turn: the essence, the base, and the
	// old and the new object for a handler.
	copies = 4
	// typedCopies is the number of copies as a Go type of a handler: the old and the new
	// object.
	typedCopies = 2
)

// LimitMemory sets the budgets and the backlog for a process with this memory limit. The
// turns, the objects of daemons and the declared children take three eighths of it together,
// and entries that wait for turns about a seventh. One namespace can have three quarters of
// the former, and an eighth of the limit for the running handlers of small objects. All
// namespaces together can have a quarter of the limit for these, but a few of each always run.
// The sum is less than the limit, because the runtime and connections need memory.
//
// Costly turns leave a quarter to the others, so modest turns do not wait for slow
// handlers of large objects. Daemons run for long, and children are declared in turns that
// have memory already. So both count, but they never wait for turns.
func (c *Config) LimitMemory(limit int64) {
	size := int(min(max(limit/8*3, modestTurns), maxAllTurns))
	all := &queue.Budget{Size: size, Most: size - size/4}
	c.Budget, c.Modest, c.Held, c.Declared = NewBudget(), NewModestBudget(limit), NewHeldBudget(limit), NewDeclaredBudget(limit)
	for _, part := range []*queue.Budget{c.Budget, c.Modest, c.Held, c.Declared} {
		part.Whole = all
	}
	crowd := int(min(max(limit/8, leastCalls*callMemory), maxAllTurns))
	c.Crowd = &queue.Crowd{Limit: crowd, Total: 2 * crowd, Least: crowd / 16, Reached: crowdReport(c.Log)}
	c.Budget.Rest, c.Held.Counted, c.Declared.Counted = size/4, true, true
	c.Budget.Hard = int(min(max(limit/2, costlyTurns), maxAllTurns))
	c.Waiting = &queue.Backlog{
		CostlyLimit: int(min(max(limit/10, costlyBacklog), maxAllTurns)),
		SpareLimit:  int(min(max(limit/28, packedBacklog), maxAllTurns)),
	}
}

// crowdReport returns a function that warns that the handlers of a namespace run for so many
// objects that others wait.
func crowdReport(log *slog.Logger) func(namespace string) {
	var limit loglimit.Limiter
	return func(group string) {
		namespace := strings.TrimSuffix(group, largeCrowd)
		if ok, _ := limit.Allow(""); ok {
			log.Warn("So many handlers are running for the objects of a namespace that its other objects wait for them. Let handlers end and retry instead of waiting, or increase the memory limit.",
				"namespace", namespace)
		}
	}
}

// NewBudget returns the budget of costly turns, which all controllers of an operator share.
func NewBudget() *queue.Budget {
	return &queue.Budget{Size: costlyTurns, Patience: costlyPatience, Grace: costlyGrace}
}

// NewModestBudget returns the budget of modest turns, which all controllers of an operator
// share: a quarter of the memory limit of the process. One namespace can have three
// quarters of it.
func NewModestBudget(memoryLimit int64) *queue.Budget {
	size := int(min(max(memoryLimit/4, modestTurns), maxModestTurns))
	return &queue.Budget{Size: size, Most: size - size/4, Patience: costlyPatience}
}

// NewHeldBudget returns the budget of the objects of running daemons, which all controllers
// of an operator share. It has the size of [NewModestBudget]. Daemons wait for as long as it
// takes, because others may run for as long as their objects exist.
func NewHeldBudget(memoryLimit int64) *queue.Budget {
	b := NewModestBudget(memoryLimit)
	b.Patience = aYear
	return b
}

// NewDeclaredBudget returns the budget of the children and the sub-handlers that calls declare,
// which all controllers of an operator share: half of [NewModestBudget].
func NewDeclaredBudget(memoryLimit int64) *queue.Budget {
	b := NewModestBudget(memoryLimit)
	b.Size, b.Most = b.Size/2, b.Most/2
	return b
}

const aYear = 365 * 24 * time.Hour

// costOf estimates the memory of a turn of an object, in bytes. 0 means neither modest
// nor costly. The compressed state of the object counts after its first turn has measured
// it: that is too slow for the goroutine of the watch. The Go types of handlers count with
// the one that takes the most memory: handlers are called one by one.
func (c *Controller) costOf(b *object.Body) int {
	if cost := c.turnMemory(b); cost >= modestTurn {
		return cost
	}
	return 0
}

// turnMemory estimates the memory of a turn of an object, in bytes. It may be 0 for small objects.
func (c *Controller) turnMemory(b *object.Body) int {
	typed := 0
	for _, t := range c.types {
		typed = max(typed, b.MemoryAs(t, footprint.Small))
	}
	return copies*b.Memory() + typedCopies*typed
}

// callMemoryOf estimates the memory of a running handler of an object, in bytes. The memory of
// modest and costly turns is that of their budgets.
func (c *Controller) callMemoryOf(b *object.Body) int {
	call := callMemory
	if c.processor != nil && c.processor.Reconcile != nil {
		call += declaringMemory
	}
	if memory := c.turnMemory(b); memory < modestTurn {
		return call + memory
	}
	return call
}

// aside is the [process.Processor.Aside] of the controller, and inside its Inside.
func (c *Controller) aside(b *object.Body, call func()) {
	if b.Memory() >= heldObject {
		b.Forget() // filters have decoded parts of the object, and handlers may take hours
	}
	c.queue.Aside(b.Namespace, c.callMemoryOf(b), call)
}

func (c *Controller) inside(b *object.Body, part func()) {
	c.queue.Inside(b.Namespace, c.callMemoryOf(b), part)
}

// callRoom is the [process.Room] of the controller.
func (c *Controller) callRoom(ctx context.Context, namespace string, bytes, own int, wait bool) (leave func(), ok bool) {
	if c.config.Declared == nil {
		return func() {}, true
	}
	if wait {
		return c.config.Declared.Acquire(bytes, namespace, ctx.Done(), nil), true
	}
	return c.config.Declared.Try(bytes, own, namespace)
}

// typesOf returns the Go types of the handlers.
func typesOf(handlers handler.Set) (all []*footprint.Type) {
	for _, h := range handlers {
		if h.Type == nil {
			continue
		}
		if t := footprint.Of(h.Type); !slices.Contains(all, t) {
			all = append(all, t)
		}
	}
	return all
}

// cost returns [costOf] for an entry. Without an event, it is the cost of the object's
// last turn. With one, it is no less than that: changes of its handlers may still be decoded.
func (c *Controller) cost(key string, e entry) int {
	if e.shed > 0 {
		return e.shed
	}
	last := 0
	if cost, ok := c.costly.Load(key); ok {
		last = cost.(int)
	}
	if e.event != nil {
		return max(last, c.costOf(e.event.Body))
	}
	return last
}

// noteCost stores the cost of turns of an object, for entries without an event, and for the changes
// of its handlers that wait for a write: burden is their memory in bytes. body may be nil.
func (c *Controller) noteCost(key string, body *object.Body, burden int) {
	if body == nil {
		return
	}
	body.Measure()
	if cost := c.turnMemory(body) + copies*burden; cost >= modestTurn {
		c.costly.Store(key, cost)
	} else {
		c.costly.Delete(key)
	}
}

// shed returns an entry without the content of the object, which is read again when the
// turn starts. Otherwise large objects whose turns wait for the memory of others would
// block the watch, and with it all objects of the resource. Objects that wait for their
// own slow handlers would fill the memory. If there is room, small objects that resemble
// others are compressed instead: that takes less time than to read them again. A
// deletion counts as missed: only the identity of the object is known then.
func (c *Controller) shed(_ string, e entry, roomy bool) entry {
	event, body := *e.event, e.event.Body
	e.event = &event
	if event.Gone() {
		event.Body, event.Missed = body.Identity.Stub(), true
		return e
	}
	if e.shed = c.costOf(body); e.shed == 0 && roomy {
		e.packed = c.backlog.PackSimilar(body)
	}
	e.shed = max(1, e.shed)
	event.Body = body.Identity.Bare()
	return e
}

// restore returns the entry that was shed with its content.
func (c *Controller) restore(ctx context.Context, e entry) entry {
	if e.packed == nil {
		return c.reread(ctx, e)
	}
	event := *e.event
	event.Body = e.packed.Body()
	e.event, e.packed, e.shed = &event, nil, 0
	return e
}

// reread reads the object of an entry that was shed. If the object is gone, the entry has
// no event: its deletion event follows. Reading is retried until ctx is done.
func (c *Controller) reread(ctx context.Context, e entry) entry {
	event, of := *e.event, e.event.Body.Identity
	e.event, e.shed = nil, 0
	for attempt := 1; ; attempt++ {
		event.Mark = c.processor.Mark()
		body, err := c.read(ctx, of, c.served.Select)
		switch {
		case err == nil && body != nil:
			event.Body = body
			e.event = &event
			return e
		case err == nil:
			return e
		}
		c.processor.Logger(event.Body).Debug("Failed to read a large object again; retrying.", "error", err)
		c.queue.Aside(of.Namespace, callMemory, func() { _ = backoff.Sleep(ctx, rereading.After(attempt)) })
		if ctx.Err() != nil {
			return e
		}
	}
}

// rereading is the delay between two attempts to read an object again.
var rereading = backoff.Backoff{First: time.Second, Most: 10 * time.Second}

// read reads one object. nil means that it is gone, was replaced by another one of the
// same name, has other labels than the selected ones, or cannot be parsed. "" selects all
// labels. It uses a list, because operators without change handlers may have no permission to get objects.
func (c *Controller) read(ctx context.Context, of object.Identity, selector string) (found *object.Body, err error) {
	_, err = c.client.List(ctx, c.processor.Resource, of.Namespace, kube.ListOptions{Selector: selector, Fields: fields.OneTermEqualSelector("metadata.name", of.Name).String()},
		func(b *object.Body) error {
			if b.Key() == of.Key() {
				found = b
			}
			return nil
		})
	return found, err
}
