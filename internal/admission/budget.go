package admission

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// budget is a semaphore with weights. Those who wait are served in their order.
type budget struct {
	size  int64
	queue int // how many may wait; 0 means no limit

	// pressed is called while there is no room, and returns when to be called again.
	// nil means that nothing can be done about it.
	pressed func() time.Duration

	mu      sync.Mutex
	used    int64
	waiting []*waiter
}

type waiter struct {
	weight int64
	since  time.Time
	ready  chan struct{} // closed when it is served
}

// acquire waits until there is room for the weight, or until ctx is done. A weight
// above the size counts as the size. It returns what to release.
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
	case <-w.ready: // just now
		b.used -= weight
	default:
		b.waiting = slices.DeleteFunc(b.waiting, func(other *waiter) bool { return other == w })
	}
	b.serve()
	return 0, errNoRoom
}

// await waits for a turn. It is false if ctx is done first.
func (b *budget) await(ctx context.Context, w *waiter) bool {
	for {
		var again <-chan time.Time
		if b.pressed != nil {
			timer := time.NewTimer(b.pressed())
			defer timer.Stop()
			again = timer.C
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

func (b *budget) release(weight int64) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= weight
	b.serve()
}

// serve lets those begin for whom there is room. The lock must be held.
func (b *budget) serve() {
	for len(b.waiting) > 0 && b.used+b.waiting[0].weight <= b.size {
		b.used += b.waiting[0].weight
		close(b.waiting[0].ready)
		b.waiting = slices.Delete(b.waiting, 0, 1)
	}
}

// load adds those who wait.
func (b *budget) load(of *Load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, w := range b.waiting {
		of.wait(w.since)
	}
}

// smallCost is the cost of a review up to which it need not wait for costly ones.
const smallCost = 2 << 20

// cost estimates the memory that a review takes when it is decoded, in bytes. It errs
// on the high side: commas and brackets in texts count, too. A JSON object of one
// member takes about fifty times its bytes.
func cost(body []byte) int64 {
	objects := bytes.Count(body, []byte("{"))
	others := bytes.Count(body, []byte(",")) + bytes.Count(body, []byte("["))
	return int64(2*len(body) + 400*objects + 40*others)
}

// lanes bound the reviews that are decoded and handled at the same time. Ordinary
// reviews have a lane of their own, and never wait for costly ones.
type lanes struct{ ordinary, costly, slots budget }

// enter waits for a turn; leave must follow.
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

// Load is how busy a [Reviewer] is.
type Load struct {
	Receiving int       // reviews whose bodies arrive
	Waiting   int       // reviews that wait for capacity
	Since     time.Time // when the first of those began to wait; zero if none waits
	InFlight  int       // reviews that are handled
	Bytes     int64     // of all of them
}

func (l *Load) wait(since time.Time) {
	l.Waiting++
	if l.Since.IsZero() || since.Before(l.Since) {
		l.Since = since
	}
}
