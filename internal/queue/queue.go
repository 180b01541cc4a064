// Package queue runs one sequential actor for each key: entries of one key are
// taken one after another, those of different keys at the same time.
package queue

import (
	"context"
	"sync"
	"time"
)

// Config says what actors do.
type Config[K comparable, E any] struct {
	// Turn handles one entry. It is never called twice at a time for one key.
	Turn func(ctx context.Context, key K, entry E)

	// Add puts a new entry to those that wait, and may replace some of them.
	// Nil stands for appending.
	Add func(waiting []E, entry E) []E

	// Weigh returns the number of bytes that a waiting entry keeps in memory, and
	// Limit is the number that may wait before Put blocks; 0 is no limit. Entries of
	// costly turns have a limit of their own, CostlyLimit.
	Weigh              func(entry E) int
	Limit, CostlyLimit int

	// Cost estimates the memory that the turn of an entry takes. Turns of no cost
	// overtake others, which begin only if Budget has room for them. nil means that
	// no turn is costly.
	Cost   func(key K, entry E) int
	Budget *Budget

	// Urgent tells whether an entry that begins to wait for a turn goes before those
	// that do not hurry; nil for none. One in eight turns is theirs even so.
	Urgent func(entry E) bool

	// Workers is how many turns may run at the same time; 0 is no limit. Those
	// that wait take what is newest when they begin.
	Workers int

	// Active is how many of them may be on our side of the work, which is all but
	// what they do in [Queue.Aside]; 0 is no limit. It bounds what turns need in
	// memory when there are many at once, whatever time those take that are aside.
	Active int
}

// Queue holds the entries that wait. An actor exists only while its key has
// entries, so that an idle key costs nothing, and a goroutine only while it has
// its turn.
type Queue[K comparable, E any] struct {
	config Config[K, E]

	mu        sync.Mutex
	space     sync.Cond // entries were taken, or the queue was closed
	weight    int       // of entries that wait, without those of costly turns
	costly    int       // the weight of those
	actors    map[K]*actor[E]
	ready     ready[E]            // turns that wait for their beginning
	returning fifo[chan struct{}] // turns that were aside, and wait for being active again
	turns     int                 // that run
	active    int                 // of them
	closed    bool
	wait      sync.WaitGroup
}

type actor[E any] struct {
	waiting []E
	since   time.Time  // when the first of them came
	turn    func()     // nil before the first entry
	cost    func() int // of the next turn; the lock must be held
	taken   int        // what the turn that runs took of the budget
	here    bool       // its turn is had by [Queue.Try]
}

// New makes an empty queue.
func New[K comparable, E any](c Config[K, E]) *Queue[K, E] {
	if c.Add == nil {
		c.Add = func(waiting []E, entry E) []E { return append(waiting, entry) }
	}
	if c.Weigh == nil {
		c.Weigh = func(E) int { return 0 }
	}
	if c.Cost == nil {
		c.Cost = func(K, E) int { return 0 }
	}
	q := &Queue[K, E]{config: c, actors: map[K]*actor[E]{}}
	q.space.L = &q.mu
	return q
}

// Put gives an entry to the actor of the key. It blocks while too much is
// waiting, unless the entry weighs nothing. After Close, entries are dropped.
//
// The context is what the actor's turns get.
func (q *Queue[K, E]) Put(ctx context.Context, key K, entry E) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for q.full(key, entry, 1) && !q.closed {
		q.space.Wait()
	}
	if !q.closed {
		q.put(ctx, key, entry)
	}
}

// Offer is a Put that does not wait, for entries that should not be kept behind
// those which have filled the queue: it may hold the same weight once more of
// them. It returns whether the entry was taken.
func (q *Queue[K, E]) Offer(ctx context.Context, key K, entry E) (taken bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.closed || q.full(key, entry, 2) {
		return false
	}
	q.put(ctx, key, entry)
	return true
}

// full reports whether entries of this kind fill so many times their limit.
func (q *Queue[K, E]) full(key K, entry E, times int) bool {
	weight, limit := q.weight, q.config.Limit
	if q.config.Cost(key, entry) > 0 {
		weight, limit = q.costly, q.config.CostlyLimit
	}
	return limit > 0 && weight >= times*limit && q.config.Weigh(entry) > 0
}

func (q *Queue[K, E]) put(ctx context.Context, key K, entry E) {
	a := q.actors[key]
	if a == nil {
		a = &actor[E]{}
		q.actors[key] = a
	}
	if a.turn == nil {
		a.turn = func() { q.one(ctx, key, a) }
		a.cost = func() int {
			if len(a.waiting) == 0 {
				return 0
			}
			return q.config.Cost(key, a.waiting[0])
		}
		if !a.here {
			q.ready.push(a, q.config.Urgent != nil && q.config.Urgent(entry))
		}
	}
	if len(a.waiting) == 0 {
		a.since = time.Now()
	}
	q.weigh(key, a.waiting, -1)
	a.waiting = q.config.Add(a.waiting, entry)
	q.weigh(key, a.waiting, 1)
	q.advance()
}

// advance lets turns go on and begin, as many as may. Those that were aside go
// first: what has begun is to come to its end.
func (q *Queue[K, E]) advance() {
	for q.config.Active == 0 || q.active < q.config.Active {
		if back, ok := q.returning.pop(); ok {
			q.active++
			close(back)
			continue
		}
		if q.config.Workers > 0 && q.turns >= q.config.Workers {
			return
		}
		a, ok := q.ready.pop(q.admit)
		if !ok {
			return
		}
		q.active++
		q.turns++
		q.wait.Go(a.turn)
	}
}

// admit takes what the next turn of the actor costs from the budget.
func (q *Queue[K, E]) admit(a *actor[E]) bool {
	cost := a.cost()
	if !q.config.Budget.take(cost, q, q.resume) {
		return false
	}
	a.taken = cost
	return true
}

// resume lets turns begin that waited for room in the budget.
func (q *Queue[K, E]) resume() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.closed {
		q.advance()
	}
}

// one has one turn of a key, if there is still an entry for it.
func (q *Queue[K, E]) one(ctx context.Context, key K, a *actor[E]) {
	taken := a.taken // by this turn: only [Queue.advance] began it
	a.taken = 0
	if entry, some := q.take(key, a); some {
		q.config.Turn(ctx, key, entry)
	}
	q.config.Budget.release(taken)
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active--
	q.turns--
	if len(a.waiting) > 0 {
		q.ready.push(a, true)
	} else {
		delete(q.actors, key)
	}
	q.advance()
}

func (q *Queue[K, E]) take(key K, a *actor[E]) (entry E, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(a.waiting) == 0 { // it was dropped
		return entry, false
	}
	entry = a.waiting[0]
	q.weigh(key, a.waiting[:1], -1)
	var none E
	a.waiting[0] = none
	a.waiting = a.waiting[1:]
	if len(a.waiting) > 0 {
		a.since = time.Now() // or a bit before
	}
	q.space.Broadcast()
	return entry, true
}

// Aside does something within a turn that may take any time, and lets others be
// active meanwhile.
func (q *Queue[K, E]) Aside(fn func()) {
	if q.config.Active == 0 {
		fn()
		return
	}
	q.mu.Lock()
	q.active--
	q.advance()
	q.mu.Unlock()
	defer q.back()
	fn()
}

// back waits until the turn may be active again.
func (q *Queue[K, E]) back() {
	granted := make(chan struct{})
	q.mu.Lock()
	q.returning.push(granted)
	q.advance()
	q.mu.Unlock()
	<-granted
}

// weigh adds the weight of entries that wait, or subtracts it.
func (q *Queue[K, E]) weigh(key K, entries []E, sign int) {
	for _, e := range entries {
		weight := sign * q.config.Weigh(e)
		if q.config.Cost(key, e) > 0 {
			q.costly += weight
		} else {
			q.weight += weight
		}
	}
}

// Try has a turn of the key in the goroutine of the caller, if nothing waits or
// is being handled for it, and returns whether it had one and what fn returned.
// It is for what is quick: it counts for no limit. Whatever is put meanwhile waits.
func (q *Queue[K, E]) Try(key K, fn func() bool) (done bool) {
	q.mu.Lock()
	if q.closed || q.actors[key] != nil {
		q.mu.Unlock()
		return false
	}
	a := &actor[E]{here: true}
	q.actors[key] = a
	q.mu.Unlock()
	defer func() {
		q.mu.Lock()
		defer q.mu.Unlock()
		if a.here = false; len(a.waiting) == 0 {
			delete(q.actors, key)
			return
		}
		q.ready.push(a, true)
		q.advance()
	}()
	return fn()
}

// Depth tells how many keys have an actor now, how many bytes wait, and for how
// long the first of the entries has waited, about.
func (q *Queue[K, E]) Depth() (actors, bytes int, oldest time.Duration) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, a := range q.actors {
		if len(a.waiting) > 0 {
			oldest = max(oldest, time.Since(a.since))
		}
	}
	return len(q.actors), q.weight + q.costly, oldest
}

// Close drops what waits, takes no more entries, and waits until the turns
// that are running have ended.
func (q *Queue[K, E]) Close() {
	q.mu.Lock()
	q.closed = true
	for _, a := range q.actors {
		a.waiting = nil
	}
	q.weight, q.costly = 0, 0
	q.space.Broadcast()
	q.mu.Unlock()
	q.wait.Wait()
}
