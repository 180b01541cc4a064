package kube

import (
	"context"
	"encoding/pem"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/client-go/rest"
)

// pipes is a network in memory. Its connections can be frozen: they stay open, but
// transmit nothing.
type pipes struct {
	accepted chan net.Conn
	closed   chan struct{}
	once     sync.Once
	mu       sync.Mutex
	conns    []*pipe
}

type pipe struct {
	net.Conn
	frozen chan struct{}
	ended  chan struct{}
	once   sync.Once
}

func (p *pipe) Write(b []byte) (int, error) {
	select {
	case <-p.frozen:
		<-p.ended
		return 0, net.ErrClosed
	default:
		return p.Conn.Write(b)
	}
}

func (p *pipe) Close() error {
	p.once.Do(func() { close(p.ended) })
	return p.Conn.Close()
}

func (p *pipes) dial(context.Context, string, string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	c := &pipe{Conn: theirs, frozen: make(chan struct{}), ended: make(chan struct{})}
	p.conns = append(p.conns, c)
	p.accepted <- c
	return ours, nil
}

// freeze freezes the connections that exist.
func (p *pipes) freeze() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.conns {
		close(c.frozen)
	}
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accepted:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 443} }

// watching runs a test in virtual time with a server that opens silent watches of up to
// limit concurrent streams per connection.
func watching(t *testing.T, limit int, test func(t *testing.T, network *pipes, client *Client, conns func() map[string]int)) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]int{} // open watches by connection
		number := map[string]string{}
		s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			c := r.Context().Value(connKey{}).(string)
			if r.URL.Query().Has("watch") {
				mu.Lock()
				if number[c] == "" {
					number[c] = fmt.Sprint("connection ", len(number)+1)
				}
				seen[number[c]+" "+r.Proto]++
				mu.Unlock()
				fmt.Fprintf(w, `{"type":"ADDED","object":%s}`+"\n", onePod)
				w.(http.Flusher).Flush()
				<-r.Context().Done()
				return
			}
			fmt.Fprint(w, onePod)
		}))
		s.Listener.Close()
		network := &pipes{accepted: make(chan net.Conn, 100), closed: make(chan struct{})}
		s.Listener, s.EnableHTTP2 = network, true
		s.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: limit}
		s.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
			return context.WithValue(ctx, connKey{}, fmt.Sprintf("%p", c))
		}
		s.StartTLS()
		defer s.Close()
		ca := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
		client, err := NewClient(&rest.Config{Host: "https://127.0.0.1", Dial: network.dial, TLSClientConfig: rest.TLSClientConfig{CAData: ca}}, DefaultOptions())
		if err != nil {
			t.Fatal(err)
		}
		test(t, network, client, func() map[string]int { mu.Lock(); defer mu.Unlock(); return seen })
		client.shared.conns.Load().closeIdle()
		s.CloseClientConnections()
		time.Sleep(2 * time.Second)
	})
}

type connKey struct{}

func openJoint(t *testing.T, client *Client, n int) (all []*Watch) {
	for range n {
		w, err := client.Watch(t.Context(), pods, "", WatchOptions{Share: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Next(); err != nil {
			t.Fatal(err)
		}
		all = append(all, w)
	}
	return all
}

func TestWatchesShareConnectionsUpToTheLimitOfTheServer(t *testing.T) {
	watching(t, 10, func(t *testing.T, _ *pipes, client *Client, conns func() map[string]int) {
		watches := openJoint(t, client, 25)
		if err := get(t.Context(), client); err != nil {
			t.Error(err)
		}
		got := conns()
		if len(got) != 3 || got["connection 1 HTTP/2.0"] != 10 || got["connection 3 HTTP/2.0"] != 5 {
			t.Errorf("watches by connection: %v", got)
		}
		for _, w := range watches {
			w.Close()
		}
	})
}

func TestABurstOfWatchesMakesFewConnections(t *testing.T) {
	watching(t, 1000, func(t *testing.T, network *pipes, client *Client, _ func() map[string]int) {
		var all sync.WaitGroup
		for range 90 {
			all.Go(func() {
				for _, w := range openJoint(t, client, 1) {
					defer w.Close()
				}
			})
		}
		all.Wait()
		if n := len(network.conns); n > maxOpenings {
			t.Errorf("%d connections for 90 watches", n)
		}
	})
}

func TestAFrozenSharedConnectionIsDetected(t *testing.T) {
	watching(t, 10, func(t *testing.T, network *pipes, client *Client, _ func() map[string]int) {
		watches := openJoint(t, client, 3)
		time.Sleep(time.Minute)
		network.freeze()
		began := time.Now()
		for _, w := range watches {
			if e, err := w.Next(); err == nil {
				t.Errorf("got %v", e)
			}
			w.Close()
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("detected after %v", took)
		}
		for _, w := range openJoint(t, client, 3) {
			w.Close()
		}
	})
}
