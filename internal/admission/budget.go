package admission

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// budget is a weighted semaphore. Waiters are served in the order of arrival.
type budget struct {
	size  int64
	queue int // the maximum number of waiters; 0 means no limit

	// pressed is called while there is no room. It tries to make room and returns the
	// time until it must be called again. May be nil.
	pressed func() time.Duration

	mu      sync.Mutex
	used    int64
	waiting []*waiter
	due     time.Time // of the next call of pressed
}

type waiter struct {
	weight int64
	since  time.Time
	ready  chan struct{} // closed when the weight is acquired
}

// acquire waits until there is room for the weight. A weight above the size counts as
// the size. acquire returns the weight to release. It returns errNoRoom if ctx is done
// first or if too many callers wait.
func (b *budget) acquire(ctx context.Context, weight int64) (int64, error) {
	weight = min(weight, b.size)
	b.mu.Lock()
	if len(b.waiting) == 0 && b.used+weight <= b.size {
		b.used += weight
		b.mu.Unlock()
		return weight, nil
	}
	if b.queue > 0 && len(b.waiting) >= b.queue {
		b.mu.Unlock()
		return 0, errNoRoom
	}
	w := &waiter{weight, time.Now(), make(chan struct{})}
	b.waiting = append(b.waiting, w)
	b.mu.Unlock()
	if b.await(ctx, w) {
		return weight, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	select {
	case <-w.ready: // acquired after await gave up
		b.used -= weight
	default:
		b.waiting = slices.DeleteFunc(b.waiting, func(other *waiter) bool { return other == w })
	}
	b.serve()
	return 0, errNoRoom
}

// await waits until w is served. It returns false if ctx is done first.
func (b *budget) await(ctx context.Context, w *waiter) bool {
	var again <-chan time.Time
	for {
		if b.pressed != nil {
			again = time.After(b.press())
		}
		select {
		case <-w.ready:
			return true
		case <-ctx.Done():
			return false
		case <-again:
		}
	}
}

// press calls pressed if it is due, and returns the time until it must be called again.
// One call serves all waiters, because each of them would look at the same letters.
func (b *budget) press() time.Duration {
	b.mu.Lock()
	if left := time.Until(b.due); left > 0 {
		b.mu.Unlock()
		return left
	}
	b.due = time.Now().Add(leastPress)
	b.mu.Unlock()
	next := max(b.pressed(), leastPress)
	b.mu.Lock()
	defer b.mu.Unlock()
	b.due = time.Now().Add(next)
	return next
}

// leastPress is the shortest time between two calls of pressed.
const leastPress = 10 * time.Millisecond

func (b *budget) release(weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= weight
	b.serve()
}

// serve serves the waiters for whom there is room. The lock must be held.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].weight <= b.size {
		b.used += b.waiting[0].weight
		close(b.waiting[0].ready)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// load adds the waiters to the load.
func (b *budget) load(of *Load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiting {
		of.wait(w.since)
	}
}

// smallCost is the highest cost of an ordinary review; see [lanes].
const smallCost = 2 << 20

// cost estimates the memory of a decoded review, in bytes. It is rather too high:
// commas and brackets inside of strings count as well. A JSON object with one member
// takes about fifty times its bytes.
func cost(body []byte) int64 {
	objects := bytes.Count(body, []byte("{"))
	others := bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("["))
	return int64(2*len(body) + 400*objects + 40*others)
}

// lanes limits the reviews that are decoded and handled concurrently. Ordinary reviews
// have their own lane, so they never wait for costly ones.
type lanes struct{ ordinary, costly, slots budget }

// enter waits until a review of this cost may be handled. The caller must call leave
// afterwards.
func (l *lanes) enter(ctx context.Context, cost int64) (leave func(), err error) {
	lane := &l.ordinary
	if cost > smallCost {
		lane = &l.costly
	}
	weight, err := lane.acquire(ctx, cost)
	if err != nil {
		return nil, err
	}
	if _, err := l.slots.acquire(ctx, 1); err != nil {
		lane.release(weight)
		return nil, err
	}
	return func() { l.slots.release(1); lane.release(weight) }, nil
}

// Load is the current load of a [Reviewer].
type Load struct {
	Receiving int       // reviews whose bodies are being received
	Waiting   int       // reviews that wait for capacity
	Since     time.Time // the start of the longest wait; zero means that none waits
	InFlight  int       // reviews that are being handled
	Bytes     int64     // memory for the bodies of all reviews
}

func (l *Load) wait(since time.Time) {
	l.Waiting++
	if l.Since.IsZero() || since.Before(l.Since) {
		l.Since = since
	}
}
