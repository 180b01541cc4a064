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

// gate bounds how many connections of one peer process data at the same time. Many busy
// connections fill the run queues of the Go scheduler: then all other goroutines of the
// process wait for seconds, even if the server drops the data.
//
// A connection processes data from the end of one read until the beginning of the next.
// A slow handler may delay the next read, so it counts for at most [slice].
type gate struct {
	most int

	mu      sync.Mutex
	busy    []*turn // in the order of their beginning
	waiting []*turn
	timer   *time.Timer // ends the oldest turn; nil while none is needed
}

// turn is the time in which a connection processes data.
type turn struct {
	began time.Time
	open  chan struct{} // closed when the turn begins
}

// enter waits for a turn. Turns begin in the order of the calls. nil means that the
// connection was closed first: a peer can open connections faster than they get their turns,
// and those that were closed must not wait.
func (g *gate) enter(closed <-chan struct{}) *turn {
	t := &turn{open: make(chan struct{})}
	g.mu.Lock()
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
	if i := slices.Index(g.busy, t); i >= 0 {
		g.busy = slices.Delete(g.busy, i, i+1)
		g.proceed()
	}
}

// proceed begins the next turns. The lock must be held.
func (g *gate) proceed() {
	now := time.Now()
	for len(g.busy) > 0 && now.Sub(g.busy[0].began) >= slice {
		g.busy = slices.Delete(g.busy, 0, 1)
	}
	for len(g.waiting) > 0 && len(g.busy) < g.most {
		t := g.waiting[0]
		g.waiting = slices.Delete(g.waiting, 0, 1)
		t.began = now
		close(t.open)
		g.busy = append(g.busy, t)
	}
	if len(g.waiting) > 0 && g.timer == nil {
		g.timer = time.AfterFunc(slice-now.Sub(g.busy[0].began), g.expire)
	}
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
	gate *gate

	mu      sync.Mutex
	current *turn

	once   sync.Once
	closed chan struct{}
}

// Read reads, and waits for a turn to process the data.
func (c *paced) Read(b []byte) (int, error) {
	c.end()
	n, err := c.Conn.Read(b)
	if n > 0 {
		t := c.gate.enter(c.closed)
		if t == nil {
			return 0, net.ErrClosed
		}
		c.mu.Lock()
		c.current = t
		c.mu.Unlock()
	}
	return n, err
}

// Close closes the connection, and ends its turn.
func (c *paced) Close() error {
	c.once.Do(func() { close(c.closed) })
	c.end()
	return c.Conn.Close()
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
