// Package connlimit limits the connections of an HTTP server: how many are open, how many are
// busy, and how much they send without requests.
package connlimit

import (
	"crypto/tls"
	"net"
	"net/http"
	"runtime"
	"sync"
	"time"
)

// Connections bounds the number of open connections. A new connection is always
// accepted: if there are too many, another one is closed. It is one of the peer with
// the most connections, because a flood must not close those of others.
//
// Connections that have sent nothing yet take little memory, so there may be [newTimes] as many
// of them in addition. A client that needs a connection may open one for each of hundreds of
// requests, and use only some of them.
//
// It also bounds how many connections of one peer are busy at the same time: one per
// processor. More would not make the peer faster. Data that belongs to no request is read
// slowly; see [allowance].
type Connections struct {
	Max  int
	Full func(peer string) // called when a connection of the peer was closed; may be nil
	// Unread bounds the bytes of bodies that may have arrived, but were not read by their
	// handlers: of all requests together. Short bodies never wait for others, but count. If there
	// is no room, a connection of the peer with the most of them is closed; the request is refused
	// if that is its own peer. 0 means no bound.
	Unread int
	// Shared bounds the busy connections of all peers as well: to two per processor. It is
	// for servers whose important peers keep their connections: new ones wait for longer.
	Shared bool

	mu     sync.Mutex
	open   map[net.Conn]*connection
	peers  map[string]*peer // by host
	unread int              // the sum of those of all connections
	fresh  int              // the connections that have sent nothing yet
	gate   gate
	idle   time.Duration // how long a connection may be idle; 0 means no limit
	sweep  *time.Timer   // closes idle connections; nil while none is idle
}

// peer is a host with open connections.
type peer struct {
	open   int // the number of connections
	unread int // the sum of those of its connections
	spent  account
}

type connection struct {
	peer   string
	state  http.ConnState
	since  time.Time // when the state began
	unread int       // see [Connections.Unread]
	used   bool      // it has had a request
	served bool      // it was idle after a request
}

// newTimes is the number of connections that have sent nothing, as a multiple of Max.
const newTimes = 3

// The data that the kernel keeps for a connection is limited, in bytes: received data that the
// server has not read, and responses that the peer has not read. The defaults are megabytes,
// which count as memory of the container. Linux keeps up to twice these limits.
const (
	readBuffer  = 64 << 10
	writeBuffer = 32 << 10
)

// Watch makes the server use at most Max connections. It sets the hooks of the server for
// connections, and wraps its handler. The server must serve the returned listener. Call it
// once.
//
// It also closes connections that are idle for the IdleTimeout of the server, which it switches
// off: an HTTP/2 connection of net/http that is closed during a request starts the timer again,
// and keeps its memory, 30 KB and more, for that time.
func (c *Connections) Watch(server *http.Server, l net.Listener) net.Listener {
	c.open, c.peers = map[net.Conn]*connection{}, map[string]*peer{}
	c.idle, server.IdleTimeout = server.IdleTimeout, -1
	server.ConnState, server.ConnContext, server.Handler = c.note, withConnection, counted(server.Handler)
	return watched{l, c}
}

// watched is a listener whose connections are counted.
type watched struct {
	net.Listener
	to *Connections
}

// Accept waits for a connection, and closes another one if there are too many.
func (w watched) Accept() (net.Conn, error) {
	conn, err := w.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return w.to.add(conn), nil
}

// add counts a connection, and returns it with the limits of its peer.
func (c *Connections) add(raw net.Conn) net.Conn {
	host := raw.RemoteAddr().String()
	if h, _, err := net.SplitHostPort(host); err == nil {
		host = h
	}
	if socket, ok := raw.(*net.TCPConn); ok {
		_ = socket.SetReadBuffer(readBuffer) // otherwise it only keeps more
		_ = socket.SetWriteBuffer(writeBuffer)
	}
	c.mu.Lock()
	if c.gate.most == 0 {
		c.gate.most = runtime.GOMAXPROCS(0)
		if c.Shared {
			c.gate.total = 2 * c.gate.most
		}
	}
	of := c.peers[host]
	if of == nil {
		of = &peer{}
		c.gate.join(&of.spent)
		c.peers[host] = of
	}
	of.open++
	conn := &paced{Conn: raw, all: c, gate: &c.gate, of: &of.spent, allowance: newAllowance(), closed: make(chan struct{})}
	c.open[conn] = &connection{peer: host, state: http.StateNew, since: time.Now()}
	c.fresh++
	var excess net.Conn
	if c.fresh > newTimes*c.Max {
		excess, host = c.evict(conn, true)
	}
	c.mu.Unlock()
	c.end(excess, host)
	return conn
}

// evict removes a connection, but not the given one: of those that have sent nothing, or of the
// others. The caller must end it without the lock, which must be held.
func (c *Connections) evict(but net.Conn, fresh bool) (excess net.Conn, peer string) {
	if excess = c.choose(but, fresh); excess != nil {
		peer = c.open[excess].peer
		c.remove(excess)
	}
	return excess, peer
}

// end closes a connection that was evicted; nil means none.
func (c *Connections) end(excess net.Conn, peer string) {
	if excess == nil {
		return
	}
	_ = excess.Close() // it is gone in any case
	if c.Full != nil {
		c.Full(peer)
	}
}

// recently is the time for which an idle connection counts as used: its client may be about to
// send the next request, which would be lost.
const recently = 5 * time.Second

// choose returns the connection to close, which is not the given one: of the peer with
// the most, an idle one, else a busy one with its first requests, else another busy one, else one
// that was used recently; of those, the one that is so for the longest time. The connections of an
// API server have had requests, unlike those of a burst from the same host. fresh selects those
// that have sent nothing yet.
func (c *Connections) choose(but net.Conn, fresh bool) (chosen net.Conn) {
	var best *connection
	for conn, one := range c.open {
		if conn != but && (one.state == http.StateNew) == fresh && (best == nil || c.rather(one, best)) {
			chosen, best = conn, one
		}
	}
	return chosen
}

func (c *Connections) rather(a, b *connection) bool {
	if x, y := c.peers[a.peer].open, c.peers[b.peer].open; x != y {
		return x > y
	}
	if x, y := rank(a), rank(b); x != y {
		return x < y
	}
	return a.since.Before(b.since)
}

func rank(c *connection) int {
	switch {
	case c.state != http.StateIdle && !c.served:
		return 2
	case c.state != http.StateIdle:
		return 3
	case c.used && time.Since(c.since) < recently:
		return 4
	}
	return 1
}

// note records the state of a connection. The HTTP server calls it.
func (c *Connections) note(conn net.Conn, state http.ConnState) {
	if t, ok := conn.(*tls.Conn); ok {
		conn = t.NetConn()
	}
	c.end(c.noted(conn, state))
}

func (c *Connections) noted(conn net.Conn, state http.ConnState) (excess net.Conn, peer string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	one := c.open[conn]
	switch {
	case one == nil: // it was closed
	case state == http.StateClosed || state == http.StateHijacked:
		c.remove(conn)
	case state != one.state:
		was := one.state
		one.state, one.since, one.served = state, time.Now(), one.served || state == http.StateIdle && one.used
		if state == http.StateIdle && c.idle > 0 && c.sweep == nil {
			c.sweep = time.AfterFunc(c.idle, c.closeIdle)
		}
		if was == http.StateNew {
			if c.fresh--; len(c.open)-c.fresh > c.Max {
				return c.evict(conn, false)
			}
		}
	}
	return nil, ""
}

// closeIdle closes the connections that were idle for long enough, and returns at the time of the
// next one.
func (c *Connections) closeIdle() {
	var ended []net.Conn
	c.mu.Lock()
	c.sweep = nil
	var oldest *connection
	for conn, one := range c.open {
		switch {
		case one.state != http.StateIdle:
		case time.Since(one.since) >= c.idle:
			ended = append(ended, conn)
			c.remove(conn)
		case oldest == nil || one.since.Before(oldest.since):
			oldest = one
		}
	}
	if oldest != nil {
		c.sweep = time.AfterFunc(c.idle-time.Since(oldest.since), c.closeIdle)
	}
	c.mu.Unlock()
	for _, conn := range ended {
		_ = conn.Close() // it is gone in any case
	}
}

// remove forgets a connection. The lock must be held.
func (c *Connections) remove(conn net.Conn) {
	host := c.open[conn].peer
	c.unread -= c.open[conn].unread
	if c.open[conn].state == http.StateNew {
		c.fresh--
	}
	c.peers[host].unread -= c.open[conn].unread
	delete(c.open, conn)
	if c.peers[host].open--; c.peers[host].open == 0 {
		delete(c.peers, host)
	}
}
