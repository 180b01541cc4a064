package connlimit

import (
	"net"
	"slices"
	"sync"
	"time"
)

// slice is the longest time for which a connection counts as busy after a read, unless it
// reads again before.
const slice = 10 * time.Millisecond

// maxSlices bounds how many times as long a turn can count if many turns last too long.
const maxSlices = 4

// A turn with n bytes costs at most turnCost + n*byteCost: the smallest frames of HTTP/2 take
// about half of that. A turn that lasts longer waits for something, such as a handler.
const (
	turnCost = 20 * time.Microsecond
	byteCost = 300 * time.Nanosecond
)

// credit is the most time by which the account of a peer can be below that of others. It
// bounds for how long a peer that did nothing before comes first.
const credit = 10 * slice

// gate bounds how many connections process data at the same time, of one peer and of all
// peers. Many busy connections fill the run queues of the Go scheduler: then all other
// goroutines of the process wait for seconds, even if the server drops the data.
//
// Of the peers that wait, the one that has used the least time is next. So a peer with few
// requests waits at most for the end of the current turns, however many others there are.
//
// A connection processes data from the end of one read until the beginning of the next.
// A slow handler may delay the next read, so it counts for at most [slice]. The more
// connections have exceeded that, the longer is the slice: they may be slow because the
// processors are busy with them.
type gate struct {
	most, total int // of one peer, and of all; a total of 0 means no bound

	mu      sync.Mutex
	busy    []*turn       // in the order of their beginning
	late    int           // turns that were too long, and still last
	waiting []*turn       // in the order of their arrival
	used    time.Duration // of the peer that began the last turn
	timer   *time.Timer   // ends the oldest turn; nil while none is needed
}

// account has the state of a peer in a gate.
type account struct {
	busy int           // its turns
	used time.Duration // the time of its turns, at most [credit] less than that of others
}

// turn is the time in which a connection processes data.
type turn struct {
	of    *account
	bytes int // that were read before it
	began time.Time
	late  bool
	open  chan struct{} // closed when the turn begins
}

// join adds a peer. A new one has no credit: an attacker could come again and again.
func (g *gate) join(of *account) {
	g.mu.Lock()
	defer g.mu.Unlock()
	of.used = g.used
}

// enter waits for a turn. The turns of a peer begin in the order of the calls. nil means that
// the connection was closed first: a peer can open connections faster than they get their
// turns, and those that were closed must not wait.
func (g *gate) enter(of *account, bytes int, closed <-chan struct{}) *turn {
	t := &turn{of: of, bytes: bytes, open: make(chan struct{})}
	g.mu.Lock()
	of.used = max(of.used, g.used-credit)
	g.waiting = append(g.waiting, t)
	g.proceed()
	g.mu.Unlock()
	select {
	case <-t.open:
		return t
	case <-closed:
	}
	g.mu.Lock()
	if i := slices.Index(g.waiting, t); i >= 0 {
		g.waiting = slices.Delete(g.waiting, i, i+1)
	}
	g.mu.Unlock()
	g.leave(t) // its turn may have started meanwhile
	return nil
}

// leave ends a turn. It may have ended before.
func (g *gate) leave(t *turn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if t.late {
		t.late = false
		g.late--
	}
	if i := slices.Index(g.busy, t); i >= 0 {
		g.end(i, time.Now())
		g.proceed()
	}
}

// slice returns for how long a turn counts now. The lock must be held.
func (g *gate) slice() time.Duration {
	if g.total == 0 {
		return slice
	}
	return slice * time.Duration(min(1+g.late/g.total, maxSlices))
}

// end ends a turn. The lock must be held.
func (g *gate) end(i int, now time.Time) {
	t := g.busy[i]
	t.of.busy--
	t.of.used += min(now.Sub(t.began), turnCost+time.Duration(t.bytes)*byteCost)
	g.busy = slices.Delete(g.busy, i, i+1)
}

// proceed begins the next turns. The lock must be held.
func (g *gate) proceed() {
	now := time.Now()
	for len(g.busy) > 0 && now.Sub(g.busy[0].began) >= g.slice() {
		g.busy[0].late = true
		g.late++
		g.end(0, now)
	}
	for {
		i := g.next()
		if i < 0 {
			break
		}
		t := g.waiting[i]
		g.waiting = slices.Delete(g.waiting, i, i+1)
		t.of.busy++
		g.used = max(g.used, t.of.used) // it never decreases
		t.began = now
		close(t.open)
		g.busy = append(g.busy, t)
	}
	if len(g.waiting) > 0 && g.timer == nil {
		g.timer = time.AfterFunc(g.slice()-now.Sub(g.busy[0].began), g.expire)
	}
}

// next returns the index of the turn that begins next: the first of the peer that has used
// the least time. -1 means that none may begin. A peer that has used much less than others
// waits for none of them. The lock must be held.
func (g *gate) next() int {
	best := -1
	for i, t := range g.waiting {
		if t.of.busy < g.most && (best < 0 || t.of.used < g.waiting[best].of.used) {
			best = i
		}
	}
	if best >= 0 && g.total > 0 && len(g.busy) >= g.total && g.waiting[best].of.used > g.used-credit/2 {
		return -1
	}
	return best
}

// expire ends turns that have lasted long enough.
func (g *gate) expire() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.timer = nil
	g.proceed()
}

// paced is a connection that processes data only in its turns. Reads never overlap.
type paced struct {
	net.Conn
	all       *Connections
	gate      *gate
	of        *account
	allowance *allowance

	mu      sync.Mutex
	current *turn

	once   sync.Once
	closed chan struct{}
}

// Read waits for the allowance, reads, and waits for a turn to process the data.
func (c *paced) Read(b []byte) (int, error) {
	c.end()
	if !c.allowance.wait(c.closed) {
		return 0, net.ErrClosed
	}
	n, err := c.Conn.Read(b)
	if n > 0 {
		c.allowance.add(-n, 0)
		t := c.gate.enter(c.of, n, c.closed)
		if t == nil {
			return 0, net.ErrClosed
		}
		c.mu.Lock()
		c.current = t
		c.mu.Unlock()
		select {
		case <-c.closed: // Close has ended the turn before this one
			c.end()
			return 0, net.ErrClosed
		default:
		}
	}
	return n, err
}

// Close closes the connection, and ends its turn. Reads fail when it is closed, and not before: the
// server would still respond to the error.
func (c *paced) Close() error {
	err := c.Conn.Close()
	c.once.Do(func() { close(c.closed) })
	c.end()
	return err
}

func (c *paced) end() {
	c.mu.Lock()
	t := c.current
	c.current = nil
	c.mu.Unlock()
	if t != nil {
		c.gate.leave(t)
	}
}

// CloseWrite closes the sending side. The HTTP server does that after its last response:
// a client that is still sending can then read it.
func (c *paced) CloseWrite() error {
	if conn, ok := c.Conn.(interface{ CloseWrite() error }); ok {
		return conn.CloseWrite()
	}
	return nil
}
