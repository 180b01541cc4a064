package connlimit

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"runtime"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
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
	gone   atomic.Bool // the same, for tests with other goroutines
}

func (c *fakeConn) RemoteAddr() net.Addr {
	addr, _ := net.ResolveTCPAddr("tcp", c.peer)
	return addr
}

func (c *fakeConn) Close() error {
	c.closed = true
	c.gone.Store(true)
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

func TestIdleConnectionsAreClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Connections{Max: 10}
		server := &http.Server{IdleTimeout: time.Minute}
		c.Watch(server, nil)
		if server.IdleTimeout >= 0 {
			t.Error("the server has a timeout of its own")
		}
		add := func(states ...http.ConnState) (*fakeConn, net.Conn) {
			raw := &fakeConn{peer: "10.0.0.1:1"}
			conn := c.add(raw)
			for _, state := range states {
				c.note(conn, state)
			}
			return raw, conn
		}
		fresh, _ := add()
		busy, _ := add(http.StateActive)
		first, _ := add(http.StateActive, http.StateIdle)
		time.Sleep(20 * time.Second)
		again, conn := add(http.StateActive, http.StateIdle)
		second, _ := add(http.StateActive, http.StateIdle)
		time.Sleep(20 * time.Second)
		c.note(conn, http.StateActive)
		c.note(conn, http.StateIdle)
		closed := func(want ...bool) {
			t.Helper()
			synctest.Wait()
			got := []bool{fresh.gone.Load(), busy.gone.Load(), first.gone.Load(), second.gone.Load(), again.gone.Load()}
			if !slices.Equal(got, want) {
				t.Errorf("closed: %v, want %v", got, want)
			}
		}
		time.Sleep(20*time.Second - 1)
		closed(false, false, false, false, false)
		time.Sleep(1)
		closed(false, false, true, false, false)
		time.Sleep(20 * time.Second)
		closed(false, false, true, true, false)
		time.Sleep(20 * time.Second)
		closed(false, false, true, true, true)
		if len(c.open) != 2 || c.sweep != nil {
			t.Errorf("%d connections are left; a timer: %v", len(c.open), c.sweep != nil)
		}
	})
}

// A peer may open and close connections all the time.
func TestClosedConnectionsFreeTheirMemory(t *testing.T) {
	began := make(chan bool, 100)
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		began <- true
		<-r.Context().Done()
	}))
	server.EnableHTTP2 = true
	server.Config.IdleTimeout = time.Hour
	c := &Connections{Max: 100}
	var freed atomic.Int32
	server.Listener = accepted{c.Watch(server.Config, server.Listener), func(conn net.Conn) {
		runtime.AddCleanup(conn.(*paced), func(n *atomic.Int32) { n.Add(1) }, &freed)
	}}
	server.StartTLS()
	defer server.Close()
	const all = 20
	for range all {
		client := *server.Client()
		transport := client.Transport.(*http.Transport).Clone()
		client.Transport = transport
		ctx, cancel := context.WithCancel(t.Context())
		ended := make(chan bool)
		go func() {
			defer close(ended)
			r, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL, nil)
			if err != nil {
				t.Error(err)
			}
			if response, err := client.Do(r); err == nil {
				response.Body.Close()
			}
		}()
		<-began
		c.mu.Lock()
		for conn := range c.open {
			_ = conn.(*paced).Conn.Close() // the peer is gone, with a request in progress
		}
		c.mu.Unlock()
		cancel()
		<-ended
		transport.CloseIdleConnections()
	}
	for deadline := time.Now().Add(20 * time.Second); freed.Load() < all-1 && time.Now().Before(deadline); {
		runtime.GC()
		time.Sleep(10 * time.Millisecond)
	}
	if n := freed.Load(); n < all-1 { // the last one may be on a stack
		t.Errorf("%d of %d connections were freed", n, all)
	}
}

// accepted is a listener that reports its connections.
type accepted struct {
	net.Listener
	report func(net.Conn)
}

func (a accepted) Accept() (net.Conn, error) {
	conn, err := a.Listener.Accept()
	if err == nil {
		a.report(conn)
	}
	return conn, err
}
