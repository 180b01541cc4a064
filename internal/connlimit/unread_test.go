package connlimit

import (
	"net"
	"testing"
)

// host is a connection of a peer.
type host struct {
	net.Conn
	peer   string
	closed bool
}

func (f *host) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.ParseIP(f.peer), Port: 1} }
func (f *host) Close() error         { f.closed = true; return nil }

func TestThePeerWithTheMostUnreadBytesGivesWay(t *testing.T) {
	c := &Connections{Max: 10, Unread: 10 * aheadBytes, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
	many, few, own := &host{peer: "10.0.0.66"}, &host{peer: "10.0.0.66"}, &host{peer: "10.0.0.1"}
	a, b, x := c.add(many), c.add(few), c.add(own)
	for range 7 {
		if !c.hold(a, aheadBytes) {
			t.Fatal("there is no room at the beginning")
		}
	}
	if !c.hold(b, aheadBytes) || !c.hold(x, aheadBytes) || !c.hold(x, aheadBytes) {
		t.Fatal("there is no room")
	}
	if c.hold(b, aheadBytes) || many.closed || few.closed {
		t.Error("the peer with the most bytes gets more, or closes a connection for that")
	}
	if !c.hold(b, shortBody) {
		t.Error("a short body was refused")
	}
	if !c.hold(x, aheadBytes) || !many.closed || few.closed || own.closed {
		t.Errorf("closed: %t, %t, %t, want the connection with the most bytes", many.closed, few.closed, own.closed)
	}
	if c.hold(a, aheadBytes); c.unread != 4*aheadBytes+shortBody {
		t.Errorf("%d bytes count, want those of the open connections", c.unread)
	}
	c.drop(x, 3*aheadBytes)
	c.drop(b, aheadBytes+shortBody)
	if c.unread != 0 || c.peers["10.0.0.66"].unread != 0 || c.peers["10.0.0.1"].unread != 0 {
		t.Errorf("%d bytes count in the end", c.unread)
	}
}
