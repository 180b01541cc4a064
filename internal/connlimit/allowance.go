package connlimit

import (
	"context"
	"io"
	"net"
	"net/http"
	"sync"
	"time"
)

// Limits of an [allowance], in bytes.
const (
	baseBytes   = 64 << 10 // at the beginning, and after some seconds
	mostBytes   = 1 << 20
	bytesPerSec = 8 << 10
	headBytes   = 4 << 10  // for the header of a request
	aheadBytes  = 64 << 10 // of a body that its handler has not read; HTTP/2 servers must not let clients send more
)

// allowance bounds the data of a connection that belongs to no request. The smallest frames
// of HTTP/2 cost the server 2 µs each, so a peer that sends nothing else could use all
// processors. net/http bounds only those that need a response.
//
// The allowance grows slowly with time, with each request, and with each byte of a body that
// a handler reads. While it is used up, the connection reads nothing. It is never closed:
// API servers would lose reviews.
type allowance struct {
	mu       sync.Mutex
	left     int // bytes; a read may exceed it
	requests int // in progress
	since    time.Time
	grown    chan struct{} // has a value after the allowance has grown
}

func newAllowance() *allowance {
	return &allowance{left: baseBytes, since: time.Now(), grown: make(chan struct{}, 1)}
}

// add changes the allowance. Requests may end before the server reads the data that the client
// sent for them, so the allowance can exceed the one at the beginning.
func (a *allowance) add(bytes, requests int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.refill(time.Now())
	a.requests += requests
	a.left = min(a.left+bytes, mostBytes+a.requests*(headBytes+aheadBytes))
	select {
	case a.grown <- struct{}{}:
	default:
	}
}

// refill adds the bytes that the connection may send with time. The lock must be held.
func (a *allowance) refill(now time.Time) {
	if bytes := int(now.Sub(a.since).Seconds() * bytesPerSec); bytes > 0 {
		a.left, a.since = max(a.left, min(a.left+bytes, baseBytes)), now
	}
}

// wait waits until the connection may read. It returns false if the connection was closed.
func (a *allowance) wait(closed <-chan struct{}) bool {
	for {
		a.mu.Lock()
		a.refill(time.Now())
		left := a.left
		a.mu.Unlock()
		if left >= 0 {
			return true
		}
		timer := time.NewTimer(time.Duration(-left)*time.Second/bytesPerSec + time.Millisecond)
		select {
		case <-timer.C:
		case <-a.grown:
		case <-closed:
			timer.Stop()
			return false
		}
		timer.Stop()
	}
}

// connectionKey is the key of the [paced] connection in the context of a request.
type connectionKey struct{}

// withConnection adds a connection to the context of its requests.
func withConnection(ctx context.Context, conn net.Conn) context.Context {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok { // a TLS connection
		conn = t.NetConn()
	}
	if p, ok := conn.(*paced); ok {
		return context.WithValue(ctx, connectionKey{}, p)
	}
	return ctx
}

// counted makes requests increase the allowances of their connections, and counts the unread
// parts of their bodies.
func counted(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, ok := r.Context().Value(connectionKey{}).(*paced)
		if !ok {
			next.ServeHTTP(w, r)
			return
		}
		a := conn.allowance
		a.add(headBytes+aheadBytes, 1)
		body := &countedBody{ReadCloser: r.Body, of: conn, length: r.ContentLength}
		held := conn.all.hold(conn, body.ahead())
		if held {
			body.held = body.ahead()
		}
		defer func() {
			body.keep(0)
			if r.Context().Err() != nil {
				// The client has canceled the request, and sends no more of the body. The part that it has
				// sent has arrived: reading it does not wait.
				_, _ = io.Copy(io.Discard, io.LimitReader(body, aheadBytes))
				a.add(-aheadBytes, -1)
				return
			}
			// The client may have sent a part of the body that was not read.
			unread := min(max(0, r.ContentLength-body.read), aheadBytes)
			a.add(int(unread)-aheadBytes, -1)
		}()
		r.Body = body
		if !held {
			http.Error(w, "too many large requests", http.StatusServiceUnavailable)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// countedBody is the body of a request. Its bytes increase the allowance of the connection.
type countedBody struct {
	io.ReadCloser
	of     *paced
	length int64 // negative: unknown
	read   int64
	held   int // the counted bytes that were not read
}

// ahead returns the bytes that may have arrived and were not read.
func (b *countedBody) ahead() int {
	if b.length < 0 {
		return aheadBytes
	}
	return int(min(max(0, b.length-b.read), aheadBytes))
}

// keep reduces the counted bytes.
func (b *countedBody) keep(bytes int) {
	if bytes < b.held {
		b.of.all.drop(b.of, b.held-bytes)
		b.held = bytes
	}
}

// Close does nothing: the part of a canceled request that was sent must remain readable. The
// server closes the body after the request.
func (b *countedBody) Close() error { return nil }

// Read adds an eighth for TLS and for the headers of frames.
func (b *countedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	b.read += int64(n)
	b.of.allowance.add(n+n/8, 0)
	if err != nil {
		b.keep(0)
	} else {
		b.keep(b.ahead())
	}
	return n, err
}
