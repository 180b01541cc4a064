package webhook

import (
	"bytes"
	"crypto/tls"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestTooManyConnectionsCloseThoseOfTheFlood(t *testing.T) {
	var log bytes.Buffer
	c := &connections{max: 4, log: slog.New(slog.NewTextHandler(&log, nil)), open: map[net.Conn]*connection{}, peers: map[string]int{}}
	begin := time.Now()
	add := func(peer string, state http.ConnState, minute int) net.Conn {
		conn := &fakeConn{peer: peer}
		c.add(conn)
		if one := c.open[conn]; one != nil {
			one.state, one.since = state, begin.Add(time.Duration(minute)*time.Minute)
		}
		return conn
	}
	server := add("10.0.0.1:1", http.StateIdle, 0) // the oldest, of another peer
	busy := add("10.0.0.2:1", http.StateActive, 1)
	idle := add("10.0.0.2:2", http.StateIdle, 2)
	fresh := add("10.0.0.2:3", http.StateNew, 3)
	for i, want := range []net.Conn{fresh, idle, busy} {
		add("10.0.0.2:9", http.StateActive, 4+i)
		if !want.(*fakeConn).closed {
			t.Errorf("connection %d: another one was closed", i)
		}
	}
	if len(c.open) != 4 || c.peers["10.0.0.1"] != 1 || server.(*fakeConn).closed {
		t.Errorf("there are %d connections of %v", len(c.open), c.peers)
	}
	if got := log.String(); strings.Count(got, "\n") != 3 || !strings.Contains(got, "limit=4 peer=10.0.0.2") {
		t.Errorf("the log is %s", got)
	}
	for range 100 {
		add("10.0.0.2:9", http.StateNew, 9)
	}
	if n := strings.Count(log.String(), "\n"); n != 5 {
		t.Errorf("%d lines were logged", n)
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

func TestReviewsAreAnsweredDuringAFloodOfConnections(t *testing.T) {
	for name, server := range map[string]Local{"TLS": {}, "plain": {Insecure: true}} {
		server.Addr, server.MaxConnections = "127.0.0.1", 8
		c := <-run(t, server, echo)
		client := clientOf(c)
		if code, _ := post(t, client, c.URL+"/x"); code != http.StatusOK {
			t.Fatalf("%s: the first answer is %d", name, code)
		}
		_, address, _ := strings.Cut(c.URL, "://")
		var flood []net.Conn
		for range 50 {
			conn, err := net.Dial("tcp", address)
			if err != nil {
				t.Fatal(err)
			}
			defer conn.Close()
			flood = append(flood, conn)
		}
		if code, _ := post(t, client, c.URL+"/x"); code != http.StatusOK {
			t.Errorf("%s: the answer is %d", name, code)
		}
		_ = flood[0].SetReadDeadline(time.Now().Add(10 * time.Second)) // a socket can always do that
		if n, err := io.Copy(io.Discard, flood[0]); n > 0 || err != nil && strings.Contains(err.Error(), "timeout") {
			t.Errorf("%s: the first connection of the flood got %d bytes, %v", name, n, err)
		}
	}
}

func TestANegativeNumberOfConnectionsIsAnError(t *testing.T) {
	if err := (Local{MaxConnections: -1}).Validate(); err == nil {
		t.Error("it is accepted")
	}
	if err := (Local{MaxConnections: 1, MinVersion: tls.VersionTLS13}).Validate(); err != nil {
		t.Error(err)
	}
}
