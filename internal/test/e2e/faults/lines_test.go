package faults_test

import (
	"errors"
	"net"
	"sync"
)

// lines are the connections to the proxy, below TLS.
type lines struct {
	net.Listener

	mu     sync.Mutex
	open   map[*line]bool
	budget func() (in, out int) // of bytes for the next connection; nil is no limit
	dead   bool                 // new connections are silent
	made   int
}

func (l *lines) Accept() (net.Conn, error) {
	conn, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	c := &line{Conn: conn, lines: l, in: -1, out: -1, frozen: make(chan struct{}), closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.budget != nil {
		c.in, c.out = l.budget()
	}
	if l.dead {
		c.freeze()
	}
	l.open[c] = true
	l.made++
	return c, nil
}

// limit gives every new connection a number of bytes to live for, in each
// direction; negative is no limit. Nil ends that.
func (l *lines) limit(budget func() (in, out int)) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.budget = budget
}

// cutAll closes the open connections.
func (l *lines) cutAll() {
	for _, c := range l.all() {
		c.Close()
	}
}

// freezeAll makes the open connections silent for ever, and new ones too until
// thaw.
func (l *lines) freezeAll() {
	l.mu.Lock()
	l.dead = true
	l.mu.Unlock()
	for _, c := range l.all() {
		c.freeze()
	}
}

// thaw lets new connections work. The frozen ones stay so.
func (l *lines) thaw() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.dead = false
}

func (l *lines) all() (open []*line) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for c := range l.open {
		open = append(open, c)
	}
	return open
}

// line is one connection.
type line struct {
	net.Conn
	lines *lines

	mu      sync.Mutex
	in, out int // bytes left; negative is no limit

	frozen, closed chan struct{}
	freezing       sync.Once
	closing        sync.Once
}

var errCut = errors.New("the connection is cut")

func (c *line) freeze() { c.freezing.Do(func() { close(c.frozen) }) }

func (c *line) Close() error {
	err := net.ErrClosed
	c.closing.Do(func() {
		close(c.closed)
		c.lines.mu.Lock()
		delete(c.lines.open, c)
		c.lines.mu.Unlock()
		err = c.Conn.Close()
	})
	return err
}

// stuck waits for the end if the connection is frozen.
func (c *line) stuck() bool {
	select {
	case <-c.frozen:
		<-c.closed
		return true
	default:
		return false
	}
}

func (c *line) Read(p []byte) (int, error) {
	n, err := c.Conn.Read(p)
	if c.stuck() {
		return 0, errCut
	}
	if taken := c.take(&c.in, n); taken < n {
		c.Close()
		return taken, errCut
	}
	return n, err
}

func (c *line) Write(p []byte) (int, error) {
	if c.stuck() {
		return 0, errCut
	}
	taken := c.take(&c.out, len(p))
	n, err := c.Conn.Write(p[:taken])
	if taken < len(p) {
		c.Close()
		return n, errCut
	}
	return n, err
}

// take uses up what is left.
func (c *line) take(left *int, n int) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	if *left < 0 {
		return n
	}
	n = min(n, *left)
	*left -= n
	return n
}
