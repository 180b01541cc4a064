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
	c := &Connections{Max: 4, Full: func(peer string) { closed = append(closed, peer) }, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
	begin := time.Now().Add(-time.Hour)
	add := func(peer string, state http.ConnState, minute int) *fakeConn {
		raw := &fakeConn{peer: peer}
		conn := c.add(raw)
		c.note(conn, state)
		if one := c.open[conn]; one != nil {
			one.since = begin.Add(time.Duration(minute) * time.Minute)
			one.used = minute == 60
		}
		return raw
	}
	server := add("10.0.0.1:1", http.StateIdle, 0) // the oldest, of another peer
	busy := add("10.0.0.2:1", http.StateActive, 1)
	idle := add("10.0.0.2:2", http.StateIdle, 2)
	used := add("10.0.0.2:4", http.StateIdle, 60) // just now
	fresh := add("10.0.0.2:3", http.StateNew, 3)
	for i, want := range []*fakeConn{idle, busy} {
		add("10.0.0.2:9", http.StateActive, 4+i)
		if !want.closed {
			t.Errorf("connection %d: another one was closed", i)
		}
	}
	if server.closed || used.closed || fresh.closed {
		t.Errorf("closed: that of another peer %t, one that was used just now %t, one that has sent nothing %t", server.closed, used.closed, fresh.closed)
	}
	oldest := fresh
	for range newTimes * 4 {
		if oldest.closed {
			t.Error("few connections have sent nothing, and one of them was closed")
		}
		add("10.0.0.2:10", http.StateNew, 10)
	}
	if !oldest.closed || len(c.open) != 4+newTimes*4 || c.fresh != newTimes*4 || c.peers["10.0.0.1"].open != 1 {
		t.Errorf("there are %d connections of %v, of which %d have sent nothing", len(c.open), c.peers, c.fresh)
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

// A burst from the host of the API server must not close its connections, whose reviews would be lost.
func TestBusyConnectionsThatHaveServedRequestsAreClosedLast(t *testing.T) {
	c := &Connections{Max: 3, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
	add := func() (*fakeConn, net.Conn) {
		raw := &fakeConn{peer: "10.0.0.1:1"}
		conn := c.add(raw)
		c.note(conn, http.StateActive)
		c.open[conn].used = true // by its request
		return raw, conn
	}
	server, conn := add()
	c.note(conn, http.StateIdle)
	c.note(conn, http.StateActive) // again, before all others
	var burst []*fakeConn
	for range 5 {
		raw, _ := add()
		burst = append(burst, raw)
	}
	if server.closed {
		t.Error("the connection that has served a request was closed")
	}
	for i, raw := range burst {
		if want := i < 3; raw.closed != want {
			t.Errorf("connection %d of the burst: closed %t, want %t", i, raw.closed, want)
		}
	}
}
