package connlimit

import (
	"net"
	"net/http"
	"slices"
	"testing"
	"time"
)

func TestTooManyConnectionsCloseThoseOfTheFlood(t *testing.T) {
	var closed []string
	c := &Connections{Max: 5, Full: func(peer string) { closed = append(closed, peer) }, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
	begin := time.Now().Add(-time.Hour)
	add := func(peer string, state http.ConnState, minute int) net.Conn {
		conn := &fakeConn{peer: peer}
		if one := c.open[c.add(conn)]; one != nil {
			one.state, one.since = state, begin.Add(time.Duration(minute)*time.Minute)
		}
		return conn
	}
	server := add("10.0.0.1:1", http.StateIdle, 0) // the oldest, of another peer
	busy := add("10.0.0.2:1", http.StateActive, 1)
	idle := add("10.0.0.2:2", http.StateIdle, 2)
	fresh := add("10.0.0.2:3", http.StateNew, 3)
	used := add("10.0.0.2:4", http.StateIdle, 60) // just now
	for i, want := range []net.Conn{fresh, idle, busy} {
		add("10.0.0.2:9", http.StateActive, 4+i)
		if !want.(*fakeConn).closed {
			t.Errorf("connection %d: another one was closed", i)
		}
	}
	if used.(*fakeConn).closed {
		t.Error("a connection that was used just now was closed")
	}
	if len(c.open) != 5 || c.peers["10.0.0.1"].open != 1 || server.(*fakeConn).closed {
		t.Errorf("there are %d connections of %v", len(c.open), c.peers)
	}
	if !slices.Equal(closed, []string{"10.0.0.2", "10.0.0.2", "10.0.0.2"}) {
		t.Errorf("connections of %q were closed", closed)
	}
	for conn := range c.open {
		c.note(conn, http.StateClosed)
	}
	if len(c.open)+len(c.peers) != 0 {
		t.Errorf("%d connections are left, of %v", len(c.open), c.peers)
	}
}

// fakeConn has an address and can be closed.
type fakeConn struct {
	net.Conn
	peer   string
	closed bool
}

func (c *fakeConn) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", c.peer)
	return addr
}

func (c *fakeConn) Close() error {
	c.closed = true
	return nil
}
