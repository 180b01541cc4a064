package admission

import (
	"cmp"
	"context"
	"slices"
	"sync"
	"time"
)

// budget is a weighted semaphore. Clients are served by turns, and so are the namespaces
// inside the share of each client. First come those that have the least, then those that
// were served longest ago; a namespace keeps its order of arrival. So a flood of requests
// of one client does not delay those of others, and neither does that of one tenant of an
// API server. Namespaces only divide the share of their client: a client gains nothing by
// namespaces that it invents.
//
// If slow requests of several tenants have all of their client's share, each other namespace can still
// have one small weight of the spare, which is beyond the size.
//
// The sum of all acquired weights never exceeds the size and the spare. A weight above the limit of a
// namespace counts as that limit, so the rest is left for others. In the budgets of
// [newBudget], that limit is more than half: at most one such request is served at the same
// time. The others have less than half of the size in addition to its real weight.
type budget struct {
	size  int64
	most  int64 // of one client, whatever the others have
	each  int64 // of one namespace of a client, whatever the others have
	queue int   // the maximum number of waiters of a client; 0 means no limit
	spare int64 // beyond the size, for namespaces that have nothing; 0 means none
	crumb int64 // the largest weight that one of them can have of the spare

	// pressed is called while there is no room. It tries to make room and returns the
	// time until it must be called again. May be nil.
	pressed func() time.Duration

	mu      sync.Mutex
	used    int64             // the sum of all acquired weights, without those of the spare
	spared  int64             // the sum of those of the spare
	turns   int64             // how many waiters were served
	peers   map[string]*share // by the host of the client; those with something only
	due     time.Time         // of the next call of pressed
	granted time.Time         // when a waiter was served last
}

// newBudget returns a budget of which one client can have three quarters, and one namespace
// three quarters of the share of its client.
func newBudget(size int64) budget {
	most := threeQuarters(size)
	return budget{size: size, most: most, each: threeQuarters(most)}
}

// splitBudget returns a budget that keeps a fifth of the size as its spare.
func splitBudget(size, crumb int64) budget {
	most := threeQuarters(size - size/5)
	return budget{size: size - size/5, most: most, each: threeQuarters(most), spare: size / 5, crumb: crumb}
}

// threeQuarters leaves at least one for others if it can.
func threeQuarters(of int64) int64 { return max(1, min(of-1, of-of/4)) }

// sender identifies the origin of a review.
type sender struct {
	client    string // the host
	namespace string // as the client claims; see [namespaceOf]
}

// share is the part of a budget that one client has or waits for.
type share struct {
	used   int64
	spared int64
	turn   int64            // when it was served last; 0 means never
	lines  map[string]*line // by namespace; those with something only
}

// line is the part of a share that one namespace has or waits for.
type line struct {
	used    int64
	spared  int64
	turn    int64
	waiting []*waiter
}

type waiter struct {
	weight  int64
	since   time.Time
	ready   chan struct{} // closed when the weight is acquired, or the waiter is refused
	refused bool          // set before ready is closed
}

// acquire waits until there is room for the weight. It returns the weight to release. It
// returns errNoRoom if ctx is done first or if too many callers of the client wait: then
// the newest caller of the namespace with the most of them is refused.
func (b *budget) acquire(ctx context.Context, by sender, weight int64) (int64, error) {
	w := &waiter{weight: min(weight, b.each, b.size), since: time.Now(), ready: make(chan struct{})}
	b.mu.Lock()
	s, l := b.of(by)
	if b.queue > 0 && s.waiting() >= b.queue && !s.refuse(l) {
		b.mu.Unlock()
		return 0, errNoRoom
	}
	l.waiting = append(l.waiting, w)
	b.serve()
	b.mu.Unlock()
	if (w.served() || b.await(ctx, w)) && !w.refused {
		return w.weight, nil
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case !w.served():
		l.waiting = slices.DeleteFunc(l.waiting, func(other *waiter) bool { return other == w })
	case !w.refused: // served after await gave up
		b.give(by, -w.weight)
	}
	b.tidy(by)
	b.serve()
	return 0, errNoRoom
}

// of returns the share of a client and the line of its namespace. The lock must be held.
func (b *budget) of(by sender) (*share, *line) {
	if b.peers == nil {
		b.peers = map[string]*share{}
	}
	s := b.peers[by.client]
	if s == nil {
		s = &share{lines: map[string]*line{}}
		b.peers[by.client] = s
	}
	l := s.lines[by.namespace]
	if l == nil {
		l = &line{}
		s.lines[by.namespace] = l
	}
	return s, l
}

// give adds an acquired weight to all sums. Less than zero gives it back: first that of the spare. The
// lock must be held.
func (b *budget) give(to sender, weight int64) {
	s, l := b.of(to)
	if back := min(l.spared, -weight); back > 0 {
		b.addSpare(s, l, -back)
		weight += back
	}
	b.add(s, l, weight)
}

func (b *budget) add(s *share, l *line, weight int64) {
	b.used += weight
	s.used += weight
	l.used += weight
}

func (b *budget) addSpare(s *share, l *line, weight int64) {
	b.spared += weight
	s.spared += weight
	l.spared += weight
}

// waiting returns the number of waiters of a client.
func (s *share) waiting() (n int) {
	for _, l := range s.lines {
		n += len(l.waiting)
	}
	return n
}

// refuse refuses the newest waiter of the longest line, to make a place in the given one. It
// returns false if no line is longer than the given one.
func (s *share) refuse(instead *line) bool {
	longest := instead
	for _, l := range s.lines {
		if len(l.waiting) > len(longest.waiting) {
			longest = l
		}
	}
	if longest == instead {
		return false
	}
	last := len(longest.waiting) - 1
	w := longest.waiting[last]
	longest.waiting = slices.Delete(longest.waiting, last, last+1)
	w.refused = true
	close(w.ready)
	return true
}

func (w *waiter) served() bool {
	select {
	case <-w.ready:
		return true
	default:
		return false
	}
}

// tidy forgets a namespace and a client that have nothing and wait for nothing. The lock
// must be held.
func (b *budget) tidy(by sender) {
	s := b.peers[by.client]
	if s == nil {
		return
	}
	if l := s.lines[by.namespace]; l != nil && l.used+l.spared == 0 && len(l.waiting) == 0 {
		delete(s.lines, by.namespace)
	}
	if len(s.lines) == 0 {
		delete(b.peers, by.client)
	}
}

// await waits until w is served or refused. It returns false if ctx is done first.
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

func (b *budget) release(by sender, weight int64) {
	if weight == 0 {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	b.give(by, -weight)
	b.tidy(by)
	b.serve()
}

// move lets an acquired weight count for another namespace or client. ok is false if that one
// would then have more than its part: nothing is moved.
func (b *budget) move(from, to sender, weight int64) (ok bool) {
	if from == to || weight == 0 {
		return true
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	defer b.serve()
	defer b.tidy(to)
	if _, l := b.of(to); l.used+l.spared+weight > b.each {
		return false
	}
	b.give(from, -weight)
	b.give(to, weight)
	b.tidy(from)
	return true
}

// serve serves the waiters for whom there is room. The lock must be held.
func (b *budget) serve() {
	for {
		s, l := b.next()
		add := b.add
		if l == nil || b.used+l.waiting[0].weight > b.size {
			if s, l = b.neediest(); l == nil {
				return
			}
			add = b.addSpare
		}
		w := l.waiting[0]
		add(s, l, w.weight)
		l.waiting = slices.Delete(l.waiting, 0, 1)
		b.turns++
		s.turn, l.turn = b.turns, b.turns
		b.granted = time.Now()
		close(w.ready)
	}
}

// next returns the client and the namespace that must be served next, or nil. A client that
// has its whole share waits for itself. The lock must be held.
func (b *budget) next() (next *share, line *line) {
	for _, s := range b.peers {
		l := s.next(b.each)
		if l == nil || s.used+l.waiting[0].weight > b.most {
			continue
		}
		if next == nil || before(s.used, next.used, s.turn, next.turn, l.waiting[0], line.waiting[0]) {
			next, line = s, l
		}
	}
	return next, line
}

// next returns the namespace of the client that must be served next, or nil. A namespace that
// has as much as one can have waits for itself.
func (s *share) next(each int64) (next *line) {
	for _, l := range s.lines {
		if len(l.waiting) == 0 || l.used+l.spared+l.waiting[0].weight > each {
			continue
		}
		if next == nil || before(l.used, next.used, l.turn, next.turn, l.waiting[0], next.waiting[0]) {
			next = l
		}
	}
	return next
}

// neediest returns the client and the namespace that must be served next of the spare, or nil: a
// namespace that has nothing and waits for little. One client can have three quarters of the spare.
// The lock must be held.
func (b *budget) neediest() (next *share, line *line) {
	if b.spare == 0 {
		return nil, nil
	}
	for _, s := range b.peers {
		for _, l := range s.lines {
			if l.used+l.spared > 0 || len(l.waiting) == 0 {
				continue
			}
			w := l.waiting[0]
			if w.weight > b.crumb || b.spared+w.weight > b.spare || s.spared+w.weight > threeQuarters(b.spare) {
				continue
			}
			if next == nil || before(s.spared, next.spared, s.turn, next.turn, w, line.waiting[0]) {
				next, line = s, l
			}
		}
	}
	return next, line
}

// before reports whether a must be served before b: it has less, was served longer ago,
// or waits longer. Without the turns, older waiters of a flood would always come first.
func before(usedA, usedB, turnA, turnB int64, a, b *waiter) bool {
	return cmp.Or(cmp.Compare(usedA, usedB), cmp.Compare(turnA, turnB), a.since.Compare(b.since)) < 0
}

// load adds the waiters to the load.
func (b *budget) load(of *Load) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, s := range b.peers {
		for _, l := range s.lines {
			for _, w := range l.waiting {
				of.wait(w.since)
			}
		}
	}
	// A client that has its whole share waits for itself. While waiters are
	// served, a new client is served soon: clients that have less go first.
	if _, next := b.next(); next != nil {
		since := next.waiting[0].since
		if b.granted.After(since) {
			since = b.granted
		}
		of.block(since)
	}
}

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
func count(text []byte) counts {
	var seen [256]int
	inside := false
	for i := 0; i < len(text); i++ {
		c := text[i]
		switch {
		case c == '"':
			inside = !inside
		case !inside:
			seen[c]++
		case c == '\\':
			i++
		}
	}
	return counts{objects: seen['{'], members: seen[':'], others: seen[','] + seen['[']}
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
func (l *lanes) enter(ctx context.Context, by sender, cost int64) (leave func(), err error) {
	lane := &l.ordinary
	if cost > smallCost {
		lane = &l.costly
	}
	weight, err := lane.acquire(ctx, by, cost)
	if err != nil {
		return nil, err
	}
	if _, err := l.slots.acquire(ctx, by, 1); err != nil {
		lane.release(by, weight)
		return nil, err
	}
	return func() { l.slots.release(by, 1); lane.release(by, weight) }, nil
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
