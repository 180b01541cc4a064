package connlimit

import (
	"bytes"
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// drain reads from a connection that never has an end. It returns the number of bytes.
func drain(conn net.Conn, limit time.Duration) (bytes int) {
	for began := time.Now(); time.Since(began) < limit; {
		n, _ := conn.Read(make([]byte, 1000)) // it never fails
		bytes += n
	}
	return bytes
}

func TestDataWithoutRequestsIsReadSlowly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Connections{Max: 1, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
		conn := c.add(endless{})
		defer conn.Close()
		if got, most := drain(conn, 10*time.Second), baseBytes+10*bytesPerSec+2000; got > most {
			t.Errorf("%d bytes were read in 10 seconds, want at most %d", got, most)
		}
	})
}

func TestAClosedConnectionDoesNotWaitForItsAllowance(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &Connections{Max: 1, open: map[net.Conn]*connection{}, peers: map[string]*peer{}}
		conn := c.add(endless{})
		conn.(*paced).allowance.add(-1<<30, 0)
		ended := make(chan error)
		go func() {
			_, err := conn.Read(make([]byte, 1))
			ended <- err
		}()
		synctest.Wait()
		conn.Close()
		if err := <-ended; err == nil {
			t.Error("the read was successful")
		}
	})
}

func TestRequestsIncreaseTheAllowance(t *testing.T) {
	body := bytes.Repeat([]byte("x"), 1<<20)
	for _, test := range []struct {
		name     string
		canceled bool
		handle   http.HandlerFunc
		change   int // of the allowance, after a connection has read the body
	}{
		{"a body that is read", false, func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }, headBytes + len(body)/8},
		{"a body that is not read", false, func(http.ResponseWriter, *http.Request) {}, headBytes + aheadBytes - len(body)},
		{"a canceled request", true, func(http.ResponseWriter, *http.Request) {}, headBytes + aheadBytes + aheadBytes/8 - len(body)}, // what it had sent is read
	} {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				a := newAllowance()
				conn := &paced{Conn: endless{}, all: &Connections{}, allowance: a}
				ctx, cancel := context.WithCancel(withConnection(t.Context(), conn))
				defer cancel()
				if test.canceled {
					cancel()
				}
				r := httptest.NewRequestWithContext(ctx, http.MethodPost, "/", bytes.NewReader(body))
				a.add(-len(body), 0)
				counted(test.handle).ServeHTTP(httptest.NewRecorder(), r)
				if got := a.left - baseBytes; got != test.change || a.requests != 0 {
					t.Errorf("the allowance has changed by %d for %d requests, want %d for none", got, a.requests, test.change)
				}
			})
		})
	}
}

func TestAllowancesAreLimited(t *testing.T) {
	a := newAllowance()
	for range 100 {
		a.add(headBytes+aheadBytes, 1)
		a.add(0, -1)
	}
	if a.left != mostBytes {
		t.Errorf("the allowance is %d bytes, want %d", a.left, mostBytes)
	}
}

// The handlers may start later than the server reads their bodies.
func TestAStartedRequestEndsTheWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newAllowance()
		a.add(-baseBytes-aheadBytes, 0)
		began := time.Now()
		go func() {
			time.Sleep(time.Second)
			a.add(headBytes+aheadBytes, 1)
		}()
		if !a.wait(nil) || time.Since(began) != time.Second {
			t.Errorf("the wait took %v, want a second", time.Since(began))
		}
	})
}

// An API server must not be slowed down, even if its reviews are refused.
// Users of an API server can cancel their requests at any time, and share its connections.
func TestCanceledRequestsDoNotDelayOthersOfTheirConnection(t *testing.T) {
	server := httptest.NewUnstartedServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		if r.ContentLength > aheadBytes { // as a review that waits for room
			<-r.Context().Done()
			_ = r.Body.Close()
		}
	}))
	server.EnableHTTP2 = true
	server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 8, MaxReceiveBufferPerStream: aheadBytes, MaxReceiveBufferPerConnection: 8 * aheadBytes}
	c := &Connections{Max: 1}
	server.Listener = c.Watch(server.Config, server.Listener)
	server.StartTLS()
	defer server.Close()
	post := func(size int, limit time.Duration) error {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, server.URL, bytes.NewReader(make([]byte, size)))
		if err != nil {
			return err
		}
		response, err := server.Client().Do(r)
		if err == nil {
			response.Body.Close()
		}
		return err
	}
	for range 16 {
		if err := post(1<<20, 50*time.Millisecond); err == nil {
			t.Fatal("a request was not canceled")
		}
	}
	if err := post(1, 10*time.Second); err != nil {
		t.Errorf("the next request: %v", err)
	}
}

func TestRequestsNeverUseUpTheAllowance(t *testing.T) {
	for _, test := range []struct {
		name   string
		handle http.HandlerFunc
	}{
		{"handlers read the bodies", func(_ http.ResponseWriter, r *http.Request) { _, _ = io.Copy(io.Discard, r.Body) }},
		{"handlers do not read the bodies", func(w http.ResponseWriter, _ *http.Request) { http.Error(w, "refused", http.StatusServiceUnavailable) }},
	} {
		t.Run(test.name, func(t *testing.T) {
			server := httptest.NewUnstartedServer(test.handle)
			server.EnableHTTP2 = true
			server.Config.HTTP2 = &http.HTTP2Config{MaxConcurrentStreams: 8, MaxReceiveBufferPerStream: aheadBytes, MaxReceiveBufferPerConnection: 8 * aheadBytes}
			c := &Connections{Max: 10}
			server.Listener = c.Watch(server.Config, server.Listener)
			server.StartTLS()
			defer server.Close()
			body := bytes.Repeat([]byte("x"), 200_000)
			server.Client().Timeout = 10 * time.Second // with the allowance used up, requests take minutes
			var clients sync.WaitGroup
			for range 8 {
				clients.Go(func() {
					for range 20 {
						response, err := server.Client().Post(server.URL, "", bytes.NewReader(body))
						if err != nil {
							t.Error(err)
							return
						}
						response.Body.Close()
					}
				})
			}
			clients.Wait()
		})
	}
}
