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

	// Weigh tells how many bytes a waiting entry keeps in memory, and Limit how
	// many may wait before Put blocks; 0 is no limit.
	Weigh func(entry E) int
	Limit int

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
	weight    int
	actors    map[K]*actor[E]
	ready     ready               // turns that wait for their beginning
	returning fifo[chan struct{}] // turns that were aside, and wait for being active again
	turns     int                 // that run
	active    int                 // of them
	closed    bool
	wait      sync.WaitGroup
}

type actor[E any] struct {
	waiting []E
	since   time.Time // when the first of them came
	turn    func()    // nil before the first entry
	here    bool      // its turn is had by [Queue.Try]
}

// New makes an empty queue.
func New[K comparable, E any](c Config[K, E]) *Queue[K, E] {
	if c.Add == nil {
		c.Add = func(waiting []E, entry E) []E { return append(waiting, entry) }
	}
	if c.Weigh == nil {
		c.Weigh = func(E) int { return 0 }
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
	for q.config.Limit > 0 && q.weight >= q.config.Limit && q.config.Weigh(entry) > 0 && !q.closed {
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
	if q.closed || q.config.Limit > 0 && q.weight >= 2*q.config.Limit && q.config.Weigh(entry) > 0 {
		return false
	}
	q.put(ctx, key, entry)
	return true
}

func (q *Queue[K, E]) put(ctx context.Context, key K, entry E) {
	a := q.actors[key]
	if a == nil {
		a = &actor[E]{}
		q.actors[key] = a
	}
	if a.turn == nil {
		a.turn = func() { q.one(ctx, key, a) }
		if !a.here {
			q.ready.push(a.turn, q.config.Urgent != nil && q.config.Urgent(entry))
		}
	}
	if len(a.waiting) == 0 {
		a.since = time.Now()
	}
	q.weight -= q.weigh(a.waiting)
	a.waiting = q.config.Add(a.waiting, entry)
	q.weight += q.weigh(a.waiting)
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
		turn, ok := q.ready.pop()
		if !ok {
			return
		}
		q.active++
		q.turns++
		q.wait.Go(turn)
	}
}

// one has one turn of a key, if there is still an entry for it.
func (q *Queue[K, E]) one(ctx context.Context, key K, a *actor[E]) {
	entry, some := q.take(a)
	if some {
		q.config.Turn(ctx, key, entry)
	}
	q.mu.Lock()
	defer q.mu.Unlock()
	q.active--
	q.turns--
	if len(a.waiting) > 0 {
		q.ready.push(a.turn, true)
	} else {
		delete(q.actors, key)
	}
	q.advance()
}

func (q *Queue[K, E]) take(a *actor[E]) (entry E, some bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if len(a.waiting) == 0 { // it was dropped
		return entry, false
	}
	entry = a.waiting[0]
	q.weight -= q.config.Weigh(entry)
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

func (q *Queue[K, E]) weigh(entries []E) int {
	total := 0
	for _, e := range entries {
		total += q.config.Weigh(e)
	}
	return total
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
		q.ready.push(a.turn, true)
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
	return len(q.actors), q.weight, oldest
}

// Close drops what waits, takes no more entries, and waits until the turns
// that are running have ended.
func (q *Queue[K, E]) Close() {
	q.mu.Lock()
	q.closed = true
	for _, a := range q.actors {
		a.waiting = nil
	}
	q.weight = 0
	q.space.Broadcast()
	q.mu.Unlock()
	q.wait.Wait()
}
