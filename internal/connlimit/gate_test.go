package connlimit

import (
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// endless is a connection whose peer sends without end.
type endless struct{ net.Conn }

func (endless) Read(b []byte) (int, error) { return len(b), nil }
func (endless) Close() error               { return nil }
func (endless) RemoteAddr() net.Addr       { return &net.TCPAddr{IP: net.IPv4(10, 0, 0, 2), Port: 1} }

// from is an endless connection of another peer.
type from struct {
	endless
	peer byte
}

func (f from) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(10, 0, 1, f.peer), Port: 1} }

// flood returns connections of one peer. Each has read something and processes it.
func flood(n int) (conns []net.Conn, read chan int) {
	c := &Connections{Max: n, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
	read = make(chan int, n)
	for i := range n {
		conn := c.add(endless{})
		conns = append(conns, conn)
		go func() {
			_, _ = conn.Read(make([]byte, 10)) // it never fails
			read <- i
		}()
		synctest.Wait() // they read in this order
	}
	return conns, read
}

func TestFewConnectionsOfAPeerAreBusyAtTheSameTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := runtime.GOMAXPROCS(0)
		conns, read := flood(most + 3)
		if len(read) != most {
			t.Fatalf("%d connections are busy, want %d", len(read), most)
		}
		conns[0].Close()
		synctest.Wait()
		if len(read) != most+1 {
			t.Errorf("after one connection has ended, %d got a turn, want %d", len(read), most+1)
		}
		go func() { _, _ = conns[1].Read(make([]byte, 10)) }() // it never fails
		synctest.Wait()
		if len(read) != most+2 {
			t.Errorf("after one connection has read again, %d got a turn, want %d", len(read), most+2)
		}
		time.Sleep(slice)
		synctest.Wait()
		if len(read) != most+3 {
			t.Errorf("after a while, %d got a turn, want %d", len(read), most+3)
		}
		for want := range most + 3 {
			if got := <-read; got != want {
				t.Errorf("connection %d got the turn of %d", got, want)
			}
		}
		time.Sleep(time.Second) // the second read ends as well
	})
}

// A handler that takes long keeps its HTTP/1 connection from reading.
func TestConnectionsWithSlowHandlersDoNotBlockOthersOfTheirPeer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		began, n := time.Now(), 10*runtime.GOMAXPROCS(0)
		_, read := flood(n)
		for range n {
			<-read
		}
		if took := time.Since(began); took > 30*slice { // turns count for longer, because the first ones never end
			t.Errorf("the last one waited %v", took)
		}
	})
}

// A peer can open connections faster than they get their turns. The limit of connections
// closes most of them.
func TestClosedConnectionsDoNotWaitForTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		most := runtime.GOMAXPROCS(0)
		conns, read := flood(most + 100)
		for _, conn := range conns[most:] {
			conn.Close()
		}
		synctest.Wait()
		if len(read) != most+100 {
			t.Errorf("%d of %d reads have ended", len(read), most+100)
		}
		if g := conns[0].(*paced).gate; len(g.waiting) > 0 || len(g.busy) != most {
			t.Errorf("%d connections wait, and %d are busy, want 0 and %d", len(g.waiting), len(g.busy), most)
		}
		if _, err := conns[most].Read(make([]byte, 10)); err == nil {
			t.Error("a closed connection can be read")
		}
	})
}

// An attacker can have many addresses.
func TestManyBusyPeersDoNotDelayAQuietOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const peers = 100
		c := &Connections{Max: peers + 1, Shared: true, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
		quiet := c.add(from{peer: peers})
		defer quiet.Close()
		var busy, highest atomic.Int32
		end := time.Now().Add(200 * slice)
		for i := range peers {
			conn := c.add(from{peer: byte(i)})
			go func() {
				defer conn.Close()
				for time.Now().Before(end) {
					_, _ = conn.Read(make([]byte, 16<<10)) // it never fails
					highest.Store(max(highest.Load(), busy.Add(1)))
					time.Sleep(slice / 2) // it processes what it has read
					busy.Add(-1)
				}
			}()
		}
		time.Sleep(100 * slice)
		if total := int32(2 * runtime.GOMAXPROCS(0)); highest.Load() > total {
			t.Errorf("%d connections were busy at the same time, want %d", highest.Load(), total)
		}
		for range 10 {
			began := time.Now()
			_, _ = quiet.Read(make([]byte, 10)) // it never fails
			if took := time.Since(began); took > slice {
				t.Errorf("the quiet peer waited %v for its turn", took)
			}
			time.Sleep(time.Millisecond)
		}
		time.Sleep(time.Until(end.Add(time.Second))) // the others end
	})
}

// interrupted is a connection that is closed while the server reads from it.
type interrupted struct {
	endless
	end func()
}

func (i *interrupted) Read(b []byte) (int, error) {
	i.end()
	return len(b), nil
}

// Otherwise, the turns of all peers would become longer with each such connection.
func TestConnectionsThatAreClosedDuringAReadLeaveNoTurn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Connections{Max: 1000, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
		for range 200 {
			raw := &interrupted{}
			conn := c.add(raw)
			raw.end = func() { conn.Close() }
			if _, err := conn.Read(make([]byte, 10)); err == nil {
				t.Fatal("a closed connection was read")
			}
			if conn.(*paced).current != nil || len(c.gate.busy)+len(c.gate.waiting)+c.gate.late > 0 {
				t.Fatalf("%d connections are busy, %d of them for long, %d wait", len(c.gate.busy), c.gate.late, len(c.gate.waiting))
			}
		}
	})
}
