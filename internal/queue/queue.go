// Package queue runs one sequential actor per key: entries of one key are handled in
// order, those of different keys concurrently.
package queue

import (
	"context"
	"sync"
	"time"
)

// Config configures a [Queue].
type Config[K comparable, E any] struct {
	// Turn handles one entry. Calls for one key are never concurrent.
	Turn func(ctx context.Context, key K, entry E)

	// Add adds a new entry to the waiting ones. It may replace the last one, but not the
	// others. nil means append.
	Add func(waiting []E, entry E) []E

	// Follow handles an entry that arrived during a turn of its key, at the end of that
	// turn. It must be quick. It reports whether it did; otherwise the entry waits for
	// another turn, behind those of other keys. nil means that all entries wait.
	Follow func(ctx context.Context, key K, entry E) (done bool)

	// Weigh returns the bytes that a waiting entry keeps in memory. Put blocks while
	// Limit bytes or more wait for a slot. Limit 0 means no limit; a nil Weigh means that
	// entries weigh nothing. Entries of costly turns count toward CostlyLimit instead.
	//
	// Entries of a key whose turn is running do not count, and Put does not block for
	// them: a turn may take very long, and the entries of other keys must not wait for
	// it.
	Weigh              func(entry E) int
	Limit, CostlyLimit int

	// Merge is used instead of Add while Limit bytes or more wait for running turns. It
	// should replace the last entry. nil means Add.
	Merge func(waiting []E, entry E) []E

	// Shed returns a form of an entry that needs little memory. Put uses it instead
	// of blocking if the turn of the entry is costly, or if its group has half of Limit or more
	// and the entry is urgent; see also Patience. Put also uses it while Limit bytes or more wait for running
	// turns. nil means that Put blocks.
	//
	// With roomy, the result may keep some bytes, which Keeps returns. They may take SpareLimit
	// in all. Otherwise it should keep none.
	Shed       func(key K, entry E, roomy bool) E
	Keeps      func(entry E) int
	SpareLimit int

	// Backlog limits the entries of costly turns, and what shed entries keep, of several
	// queues together. It needs Shed.
	Backlog *Backlog

	// Cost estimates the memory that the turn of an entry takes. Turns that cost
	// nothing overtake the others, which start only if Budget has room for them. nil
	// means that no turn is costly. It is called several times for an entry. Only the first
	// call may take long: the later ones are made while all other turns wait.
	Cost   func(key K, entry E) int
	Budget *Budget

	// Turns that cost less than Large are modest. They do not wait for the others: they
	// have their own budget, Modest, which their groups share. Large 0 means that no turn
	// is modest.
	Large  int
	Modest *Budget

	// Group returns the group of an entry. Groups take turns, so the turns of one do not
	// delay those of others. nil means that there is only one group.
	Group func(key K, entry E) string

	// Urgent reports whether a key that starts to wait for a turn with this entry goes
	// ahead of those that are not urgent. One in eight turns is theirs nevertheless.
	// nil means that no entry is urgent.
	Urgent func(entry E) bool

	// Workers limits concurrent turns. 0 means no limit. A turn takes the newest entry
	// when it starts.
	Workers int

	// Active limits the concurrent turns of a group that execute framework code; time spent
	// in [Queue.Aside] does not count. 0 means no limit. It bounds the memory of many
	// concurrent turns, however long they stay aside. A third more may run for other groups:
	// a turn may send thousands of requests, and those of other groups must not wait for it.
	// Groups without an active turn may have one each beyond that, up to twice Active in all.
	Active int

	// Crowd limits the memory of the turns of a group that are in [Queue.Aside] at the same time:
	// more turns of the group do not start. nil means no limit. One event can cause turns of
	// all keys of a group, and each takes memory until its call ends.
	Crowd *Crowd

	// Patience is the time for which Put blocks in a full queue before entries that are not
	// urgent are treated as urgent ones: those of a group that has half of Limit are shed, and
	// those of other groups are accepted. If twice the Limit waits, all are shed. It starts again
	// when less than half of Limit waits. 0 means that they wait for as long as it takes.
	Patience time.Duration
}

// Queue contains the waiting entries. An actor exists only while its key has entries,
// so an idle key needs no memory. It has a goroutine only during its turn, and an idle
// queue has none.
type Queue[K comparable, E any] struct {
	config Config[K, E]

	mu        sync.Mutex
	space     sync.Cond      // signaled when entries were taken, or the queue was closed
	weight    int            // of entries that wait for a slot, without those of costly turns
	costly    int            // weight of entries of costly turns that wait for a slot
	parked    int            // weight of entries that wait for the running turns of their keys
	kept      int            // bytes that shed entries keep
	shares    map[string]int // weight by group, as far as it is part of weight
	actors    map[K]*actor[E]
	most      int              // the largest number of actors since they were last none
	ready     ready[E]         // turns that wait to start
	returning lines[returning] // turns that were aside and wait to become active again
	turns     int              // running turns
	active    int              // running turns that are not aside
	actives   map[string]int   // the same, by group
	spare     []chan func()    // goroutines that wait for a turn to run
	stalled   time.Time        // since when Put has blocked; see [Config.Patience]
	stall     *time.Timer      // ends the patience; nil means that Put has not blocked
	closed    bool
	wait      sync.WaitGroup
}

type actor[E any] struct {
	waiting []E
	loads   []load      // of each of them
	since   time.Time   // when the first of them arrived
	turn    func()      // nil before the first entry
	next    func() need // of the next turn; the lock must be held
	room    func()      // releases the memory of the running turn; nil means none
	here    bool        // [Queue.Try] runs its turn
	running bool        // its turn is running
	load    load        // the sum of loads
	group   string      // of the last entry
	started string      // the group that the running turn counts for
}

// need describes the memory of a turn.
type need struct {
	size  size
	cost  int
	group string
}

// size classifies turns by their cost.
type size int

const (
	small size = iota
	modest
	large
)

// New returns an empty queue.
func New[K comparable, E any](c Config[K, E]) *Queue[K, E] {
	if c.Add == nil {
		c.Add = func(waiting []E, entry E) []E { return append(waiting, entry) }
	}
	if c.Merge == nil {
		c.Merge = c.Add
	}
	if c.Weigh == nil {
		c.Weigh = func(E) int { return 0 }
	}
	if c.Keeps == nil {
		c.Keeps = func(E) int { return 0 }
	}
	if c.Cost == nil {
		c.Cost = func(K, E) int { return 0 }
	}
	if c.Group == nil {
		c.Group = func(K, E) string { return "" }
	}
	q := &Queue[K, E]{config: c, actors: map[K]*actor[E]{}, shares: map[string]int{}, actives: map[string]int{}}
	q.space.L = &q.mu
	return q
}

// Put adds an entry for the key. It blocks while too much is waiting, unless the entry
// weighs nothing, waits for the running turn of its key, or can be shed. After Close,
// entries are dropped.
//
// ctx is passed to the turns of the actor.
func (q *Queue[K, E]) Put(ctx context.Context, key K, entry E) {
	q.config.Cost(key, entry)
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.full(key, entry, 1) && !q.closed {
		if q.sheds(key, entry) {
			entry = q.config.Shed(key, entry, q.roomy())
			break
		}
		if q.pressing(entry) && !q.hogs(key, entry) && !q.full(key, entry, 2) {
			break // another group has filled the queue
		}
		q.block()
	}
	if !q.closed {
		q.put(ctx, key, entry)
	}
}

// Offer is Put without blocking, for entries that should not wait behind those that
// have filled the queue. It accepts up to twice the limit. It reports whether the entry
// was taken.
func (q *Queue[K, E]) Offer(ctx context.Context, key K, entry E) (taken bool) {
	q.config.Cost(key, entry)
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.full(key, entry, 2) {
		return false
	}
	q.put(ctx, key, entry)
	return true
}

// Again makes the entry of a running turn wait for another turn of its key, ahead of the
// entries that arrived meanwhile. A turn calls it if its entry costs more than was known
// when it started.
func (q *Queue[K, E]) Again(key K, entry E) {
	q.config.Cost(key, entry)
	q.mu.Lock()
	defer q.mu.Unlock()
	a := q.actors[key]
	if q.closed || a == nil {
		return
	}
	q.count(a, -1)
	waiting, later := q.config.Add(nil, entry), a.waiting
	for len(waiting) == 1 && len(later) > 0 {
		waiting, later = q.config.Add(waiting, later[0]), later[1:]
	}
	a.waiting = append(waiting, later...) // they were added to each other before
	q.weigh(key, a, 0)
	q.count(a, 1)
}

// sheds reports whether an entry for which the queue is full is shed: its turn is costly,
// or its group alone has filled a large part of the queue, and other groups must not wait
// for it. So is one for which several groups have left no room at all, after the patience.
func (q *Queue[K, E]) sheds(key K, entry E) bool {
	return q.config.Shed != nil && (q.config.Cost(key, entry) > 0 || q.pressing(entry) && q.hogs(key, entry) || q.impatient() && q.full(key, entry, 2))
}

// pressing reports whether an entry must not wait for the turns of other groups.
func (q *Queue[K, E]) pressing(entry E) bool { return q.urgent(entry) || q.impatient() }

// impatient reports whether entries have waited for too long.
func (q *Queue[K, E]) impatient() bool {
	return !q.stalled.IsZero() && time.Since(q.stalled) >= q.config.Patience
}

// block waits until entries were taken, or the patience has ended.
func (q *Queue[K, E]) block() {
	if q.config.Patience > 0 && q.stall == nil {
		q.stalled = time.Now()
		q.stall = time.AfterFunc(q.config.Patience, func() {
			q.mu.Lock()
			defer q.mu.Unlock()
			q.space.Broadcast()
		})
	}
	q.space.Wait()
}

// calm starts the patience again.
func (q *Queue[K, E]) calm() {
	if q.stall != nil {
		q.stall.Stop()
		q.stalled, q.stall = time.Time{}, nil
	}
}

// hogs reports whether the group of an entry has filled half of the queue.
func (q *Queue[K, E]) hogs(key K, entry E) bool {
	return q.shares[q.config.Group(key, entry)] >= (q.config.Limit+1)/2
}

func (q *Queue[K, E]) urgent(entry E) bool { return q.config.Urgent != nil && q.config.Urgent(entry) }

// full reports whether entries of this kind fill so many times their limit.
func (q *Queue[K, E]) full(key K, entry E, times int) bool {
	if a := q.actors[key]; a != nil && a.running {
		return false
	}
	weight, limit, shared := q.weight, q.config.Limit, false
	if q.config.Cost(key, entry) > 0 {
		weight, limit, shared = q.costly, q.config.CostlyLimit, q.config.Backlog.full()
	}
	return (shared || limit > 0 && weight >= times*limit) && q.config.Weigh(entry) > 0
}

// roomy reports whether shed entries may keep more bytes.
func (q *Queue[K, E]) roomy() bool {
	return q.kept < q.config.SpareLimit && q.config.Backlog.roomy()
}

func (q *Queue[K, E]) put(ctx context.Context, key K, entry E) {
	a := q.actors[key]
	if a == nil {
		a = &actor[E]{}
		q.actors[key] = a
		q.most = max(q.most, len(q.actors))
	}
	group := q.config.Group(key, entry)
	if a.turn == nil {
		a.turn = func() { q.one(ctx, key, a) }
		a.next = func() need {
			if len(a.waiting) == 0 {
				return need{}
			}
			return q.need(key, a.waiting[0])
		}
		if !a.here {
			q.ready.push(a, group, q.urgent(entry))
		}
	}
	if len(a.waiting) == 0 {
		a.since = time.Now()
	}
	add := q.config.Add
	if a.running && q.config.Limit > 0 && q.parked >= q.config.Limit {
		add = q.config.Merge
		if q.config.Shed != nil && q.config.Weigh(entry) > 0 {
			entry = q.config.Shed(key, entry, q.roomy())
		}
	}
	q.count(a, -1)
	last := len(a.waiting) - 1
	a.waiting, a.group = add(a.waiting, entry), group
	q.weigh(key, a, last)
	q.count(a, 1)
	q.advance()
}

// advance resumes and starts as many turns as the limits allow. Turns that were aside
// go first, because started turns should finish.
func (q *Queue[K, E]) advance() {
	for q.config.Active == 0 || q.active < 2*q.config.Active {
		if r, ok := q.returning.pop(func(r returning) bool { return q.mayBeActive(r.group) }); ok {
			q.reactivate(r)
			continue
		}
		if q.config.Workers > 0 && q.turns >= q.config.Workers {
			return
		}
		a, ok := q.ready.pop(q)
		if !ok {
			return
		}
		a.started = a.group
		q.activate(a.started, 1)
		q.turns++
		q.start(a.turn)
	}
}

// mayBeActive reports whether the group has fewer active turns than it may have, as long as
// there are fewer than twice [Config.Active] in all.
func (q *Queue[K, E]) mayBeActive(group string) bool {
	most, own := q.config.Active, q.actives[group]
	return most == 0 || own == 0 || own < most && q.active < most+(most+2)/3
}

// activate counts a turn of the group that becomes active, or that no longer is.
func (q *Queue[K, E]) activate(group string, sign int) {
	q.active += sign
	if q.actives[group] += sign; q.actives[group] == 0 {
		delete(q.actives, group)
	}
}

// open reports whether a turn of the actor may start.
func (q *Queue[K, E]) open(a *actor[E]) bool {
	return q.mayBeActive(a.group) && q.config.Crowd.open(a.group, q, q.resume)
}

// need returns the memory of the turn of an entry.
func (q *Queue[K, E]) need(key K, entry E) need {
	cost := q.config.Cost(key, entry)
	switch {
	case cost <= 0:
		return need{}
	case cost < q.config.Large:
		return need{modest, cost, q.config.Group(key, entry)}
	}
	return need{large, cost, q.config.Group(key, entry)}
}

// admit takes the memory of the next turn of the actor from its budget.
func (q *Queue[K, E]) admit(a *actor[E]) bool {
	n, budget := a.next(), q.config.Budget
	if n.size == modest {
		budget = q.config.Modest
	}
	if !budget.take(n.cost, n.group, q, q.resume) {
		return false
	}
	a.room = func() { budget.release(n.cost, n.group) }
	return true
}

// idle reports whether the group of the actor has no memory of the budget of its turn.
func (q *Queue[K, E]) idle(a *actor[E]) bool {
	n := a.next()
	if n.size == modest {
		return q.config.Modest.idle(n.group)
	}
	return q.config.Budget.idle(n.group)
}

// resume starts turns that waited for room in the budget.
func (q *Queue[K, E]) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.advance()
	}
}

// one runs one turn of a key, if it still has an entry.
func (q *Queue[K, E]) one(ctx context.Context, key K, a *actor[E]) {
	leave := a.room // of this turn, which [Queue.advance] started
	a.room = nil
	if entry, some := q.take(a); some {
		q.config.Turn(ctx, key, entry)
		q.follow(ctx, key, a)
	}
	if leave != nil {
		leave()
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.activate(a.started, -1)
	q.turns--
	q.run(a, false)
	if len(a.waiting) > 0 {
		q.ready.push(a, a.group, true)
	} else {
		q.remove(key)
	}
	q.advance()
}

// follow handles the entry that waits for the end of a turn, if it needs no other turn.
func (q *Queue[K, E]) follow(ctx context.Context, key K, a *actor[E]) {
	if q.config.Follow == nil {
		return
	}
	first, stays := q.first(a)
	switch {
	case !stays:
		if entry, some := q.take(a); some && !q.config.Follow(ctx, key, entry) {
			q.Again(key, entry)
		}
	case q.config.Follow(ctx, key, first):
		q.take(a)
	}
}

// first returns the first waiting entry of an actor, and whether it stays as it is: new
// entries may only replace the last one.
func (q *Queue[K, E]) first(a *actor[E]) (entry E, stays bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(a.waiting) < 2 {
		return entry, false
	}
	return a.waiting[0], true
}

// remove removes the actor of a key. A map never shrinks, so after a storm of entries it
// is replaced. The lock must be held.
func (q *Queue[K, E]) remove(key K) {
	delete(q.actors, key)
	if len(q.actors) == 0 && q.most > fewActors {
		q.actors, q.most = map[K]*actor[E]{}, 0
	}
}

// fewActors is a number of actors for which a map takes little memory.
const fewActors = 1000

func (q *Queue[K, E]) take(a *actor[E]) (entry E, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(a.waiting) == 0 { // it was dropped
		return entry, false
	}
	entry = a.waiting[0]
	q.count(a, -1)
	var none E
	a.waiting[0] = none
	a.load.add(a.loads[0], -1)
	a.waiting, a.loads = a.waiting[1:], a.loads[1:]
	a.running = true
	q.count(a, 1)
	if len(a.waiting) > 0 {
		a.since = time.Now() // approximately
	}
	if q.weight < q.config.Limit/2 {
		q.calm()
	}
	q.space.Broadcast()
	return entry, true
}

// run notes whether the turn of an actor is running.
func (q *Queue[K, E]) run(a *actor[E], running bool) {
	q.count(a, -1)
	a.running = running
	q.count(a, 1)
}

// Try runs fn as a turn of the key in the caller's goroutine, if no entry of the key
// waits or is being handled. It returns the result of fn, or false if fn was not
// called. fn must be quick: the turn does not count toward any limit. Entries that are
// put meanwhile wait.
func (q *Queue[K, E]) Try(key K, fn func() bool) (done bool) {
	q.mu.Lock()
	if q.closed || q.actors[key] != nil {
		q.mu.Unlock()
		return false
	}
	a := &actor[E]{here: true, running: true}
	q.actors[key] = a
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		q.run(a, false)
		if a.here = false; len(a.waiting) == 0 {
			q.remove(key)
			return
		}
		q.ready.push(a, a.group, true)
		q.advance()
	}()
	return fn()
}

// Depth returns the number of keys with an actor, the waiting bytes, and the
// approximate age of the first waiting entry.
func (q *Queue[K, E]) Depth() (actors, bytes int, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.actors {
		if len(a.waiting) > 0 {
			oldest = max(oldest, time.Since(a.since))
		}
	}
	return len(q.actors), q.weight + q.costly + q.parked, oldest
}

// Close drops the waiting entries, rejects new ones, and waits for the running turns.
func (q *Queue[K, E]) Close() {
	q.mu.Lock()
	q.closed = true
	for _, a := range q.actors {
		a.waiting, a.loads, a.load = nil, nil, load{}
	}
	q.config.Backlog.add(-q.costly, -q.kept)
	q.weight, q.costly, q.parked, q.kept, q.shares = 0, 0, 0, 0, map[string]int{}
	q.dismiss()
	q.calm()
	q.space.Broadcast()
	q.mu.Unlock()
	q.wait.Wait()
}
