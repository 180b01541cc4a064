package admission

import (
	"bytes"
	"context"
	"slices"
	"sync"
	"time"
)

// budget is a weighted semaphore. Clients are served by turns: first those that have
// the least, each in its own order of arrival. So a flood of requests of one client does
// not delay those of others.
type budget struct {
	size  int64
	most  int64 // of one client, whatever the others have; 0 means no limit
	queue int   // the maximum number of waiters of a client; 0 means no limit

	// pressed is called while there is no room. It tries to make room and returns the
	// time until it must be called again. May be nil.
	pressed func() time.Duration

	mu      sync.Mutex
	used    int64
	peers   map[string]*share // by the host of the client; those with something only
	due     time.Time         // of the next call of pressed
	granted time.Time         // when a waiter was served last
}

// share is the part of a budget that one client has or waits for.
type share struct {
	used    int64
	waiting []*waiter
}

type waiter struct {
	weight int64
	since  time.Time
	ready  chan struct{} // closed when the weight is acquired
}

// acquire waits until there is room for the weight. A weight above the size counts as
// the size. acquire returns the weight to release. It returns errNoRoom if ctx is done
// first or if too many callers of the client wait.
func (b *budget) acquire(ctx context.Context, peer string, weight int64) (int64, error) {
	w := &waiter{min(weight, b.size), time.Now(), make(chan struct{})}
	b.mu.Lock()
	if b.peers == nil {
		b.peers = map[string]*share{}
	}
	s := b.peers[peer]
	if s == nil {
		s = &share{}
		b.peers[peer] = s
	}
	if b.queue > 0 && len(s.waiting) >= b.queue {
		b.mu.Unlock()
		return 0, errNoRoom
	}
	s.waiting = append(s.waiting, w)
	b.serve()
	b.mu.Unlock()
	if w.served() || b.await(ctx, w) {
		return w.weight, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if w.served() { // after await gave up
		b.used -= w.weight
		s.used -= w.weight
	} else {
		s.waiting = slices.DeleteFunc(s.waiting, func(other *waiter) bool { return other == w })
	}
	b.tidy(peer)
	b.serve()
	return 0, errNoRoom
}

func (w *waiter) served() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// tidy forgets a client that has nothing and waits for nothing. The lock must be held.
func (b *budget) tidy(peer string) {
	if s := b.peers[peer]; s != nil && s.used == 0 && len(s.waiting) == 0 {
		delete(b.peers, peer)
	}
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

func (b *budget) release(peer string, weight int64) {
	if weight == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.used -= weight
	b.peers[peer].used -= weight
	b.tidy(peer)
	b.serve()
}

// serve serves the waiters for whom there is room. The lock must be held.
func (b *budget) serve() {
	for {
		s := b.next()
		if s == nil || b.used+s.waiting[0].weight > b.size {
			return
		}
		w := s.waiting[0]
		b.used += w.weight
		s.used += w.weight
		s.waiting = slices.Delete(s.waiting, 0, 1)
		b.granted = time.Now()
		close(w.ready)
	}
}

// next returns the share of the client that must be served next, or nil. The lock must
// be held.
func (b *budget) next() (next *share) {
	for _, s := range b.peers {
		switch {
		case len(s.waiting) == 0:
		case b.most > 0 && s.used > 0 && s.used+s.waiting[0].weight > b.most: // the rest is for others
		case next == nil, s.used < next.used, s.used == next.used && s.waiting[0].since.Before(next.waiting[0].since):
			next = s
		}
	}
	return next
}

// load adds the waiters to the load.
func (b *budget) load(of *Load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.peers {
		for _, w := range s.waiting {
			of.wait(w.since)
		}
	}
	// A client that has its whole share waits for itself. While waiters are
	// served, a new client is served soon: clients that have less go first.
	if next := b.next(); next != nil {
		since := next.waiting[0].since
		if b.granted.After(since) {
			since = b.granted
		}
		of.block(since)
	}
}

// newBudget returns a budget of which one client can have three quarters.
func newBudget(size int64) budget { return budget{size: size, most: size - size/4} }

// smallCost is the highest cost of an ordinary review; see [lanes].
const smallCost = 2 << 20

// cost estimates the memory of a decoded review and of the difference of its objects, in
// bytes. It is rather too high. A JSON object with one member takes about fifty times its
// bytes.
func cost(body []byte) int64 {
	n := count(body)
	changed := max(0, min(n.members, maxChanged)-usuallyChanged)
	return int64(2*len(body) + 400*n.objects + 60*n.others + 40*n.members + changedCost*changed)
}

// counts are numbers of values in a JSON text.
type counts struct {
	objects int
	members int
	others  int // elements and lists
}

// count counts values by their punctuation outside of strings. The decoder finds no more of
// them: it sees the same strings, up to the first error.
func count(text []byte) (n counts) {
	for i := 0; i < len(text); i++ {
		switch text[i] {
		case '{':
			n.objects++
		case ':':
			n.members++
		case ',', '[':
			n.others++
		case '"':
			i += stringEnd(text[i+1:]) + 1
		}
	}
	return n
}

// stringEnd returns the index of the quote that ends a string, or the length if none does.
func stringEnd(text []byte) int {
	for from := 0; ; {
		quote := bytes.IndexByte(text[from:], '"')
		if quote < 0 {
			return len(text)
		}
		quote += from
		escapes := 0 // backslashes before the quote
		for escapes < quote-from && text[quote-escapes-1] == '\\' {
			escapes++
		}
		if escapes%2 == 0 {
			return quote
		}
		from = quote + 1
	}
}

const (
	// usuallyChanged members are not counted: otherwise ordinary reviews would wait.
	// Their memory is limited by the number of reviews that are handled concurrently.
	usuallyChanged = 512
	// maxChanged is the most differences that package diff returns.
	maxChanged = 1 << 16
	// changedCost is the memory of a difference with a long path.
	changedCost = 480
)

// lanes limits the reviews that are decoded and handled concurrently. Ordinary reviews
// have their own lane, so they never wait for costly ones.
type lanes struct{ ordinary, costly, slots budget }

// enter waits until a review of this cost may be handled. The caller must call leave
// afterwards.
func (l *lanes) enter(ctx context.Context, peer string, cost int64) (leave func(), err error) {
	lane := &l.ordinary
	if cost > smallCost {
		lane = &l.costly
	}
	weight, err := lane.acquire(ctx, peer, cost)
	if err != nil {
		return nil, err
	}
	if _, err := l.slots.acquire(ctx, peer, 1); err != nil {
		lane.release(peer, weight)
		return nil, err
	}
	return func() { l.slots.release(peer, 1); lane.release(peer, weight) }, nil
}

// Load is the current load of a [Reviewer].
type Load struct {
	Receiving int       // reviews whose bodies are being received
	Waiting   int       // reviews that wait for capacity
	Since     time.Time // the start of the longest wait; zero means that none waits
	Blocked   time.Time // since when a new client would wait; zero means that it would not
	InFlight  int       // reviews that are being handled
	Bytes     int64     // memory for the bodies of all reviews
}

func (l *Load) wait(since time.Time) {
	l.Waiting++
	l.Since = earliest(l.Since, since)
}

func (l *Load) block(since time.Time) { l.Blocked = earliest(l.Blocked, since) }

// earliest returns the earlier time. The first one may be zero.
func earliest(a, b time.Time) time.Time {
	if a.IsZero() || b.Before(a) {
		return b
	}
	return a
}
