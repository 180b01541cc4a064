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

	// Workers is how many turns may run at the same time; 0 is no limit. Those
	// that wait take what is newest when they begin.
	Workers int
}

// Queue holds the entries that wait. An actor exists only while its key has
// entries, so that an idle key costs nothing.
type Queue[K comparable, E any] struct {
	config Config[K, E]
	slots  chan struct{} // taken by turns; nil without a limit

	mu     sync.Mutex
	space  sync.Cond // entries were taken, or the queue was closed
	weight int
	actors map[K]*actor[E]
	closed bool
	wait   sync.WaitGroup
}

type actor[E any] struct {
	waiting []E
	since   time.Time // when the first of them came
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
	if c.Workers > 0 {
		q.slots = make(chan struct{}, c.Workers)
	}
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
	if q.closed {
		return
	}
	a := q.actors[key]
	if a == nil {
		a = &actor[E]{}
		q.actors[key] = a
		q.wait.Go(func() { q.act(ctx, key, a) })
	}
	if len(a.waiting) == 0 {
		a.since = time.Now()
	}
	q.weight -= q.weigh(a.waiting)
	a.waiting = q.config.Add(a.waiting, entry)
	q.weight += q.weigh(a.waiting)
}

// act takes the entries of one key until there are none.
func (q *Queue[K, E]) act(ctx context.Context, key K, a *actor[E]) {
	for q.one(ctx, key, a) {
	}
}

// one takes an entry, if there is any.
func (q *Queue[K, E]) one(ctx context.Context, key K, a *actor[E]) bool {
	if q.slots != nil {
		q.slots <- struct{}{}
		defer func() { <-q.slots }()
	}
	q.mu.Lock()
	if len(a.waiting) == 0 {
		delete(q.actors, key)
		q.mu.Unlock()
		return false
	}
	entry := a.waiting[0]
	q.weight -= q.config.Weigh(entry)
	var none E
	a.waiting[0] = none
	a.waiting = a.waiting[1:]
	if len(a.waiting) > 0 {
		a.since = time.Now() // or a bit before
	}
	q.space.Broadcast()
	q.mu.Unlock()

	q.config.Turn(ctx, key, entry)
	return true
}

func (q *Queue[K, E]) weigh(entries []E) int {
	total := 0
	for _, e := range entries {
		total += q.config.Weigh(e)
	}
	return total
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
