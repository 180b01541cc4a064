package life_test

import (
	"context"
	"errors"
	"net"
	"sync"

	"k8s.io/client-go/rest"
)

// line is the way from an operator to the cluster, which may become silent, or
// break.
type line struct {
	mu     sync.Mutex
	silent chan struct{} // closed when it is not anymore; nil if it is not
	broken bool
	conns  map[*wire]struct{}
}

func newLine() *line { return &line{conns: map[*wire]struct{}{}} }

// config is that of the cluster at the end of the line.
func (l *line) config() *rest.Config {
	config := rest.CopyConfig(cluster)
	config.Dial = l.dial
	return config
}

func (l *line) dial(ctx context.Context, network, address string) (net.Conn, error) {
	l.mu.Lock()
	broken := l.broken
	l.mu.Unlock()
	if broken {
		return nil, errors.New("the line is broken")
	}
	inner, err := new(net.Dialer).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	w := &wire{Conn: inner, line: l, closed: make(chan struct{})}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conns[w] = struct{}{}
	return w, nil
}

// hush makes the line silent: what is sent arrives, but nothing comes back.
func (l *line) hush() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.silent = make(chan struct{})
}

// cut breaks the line.
func (l *line) cut() {
	l.mu.Lock()
	l.broken = true
	conns := l.conns
	l.conns = map[*wire]struct{}{}
	l.mu.Unlock()
	for w := range conns {
		w.Close()
	}
}

// mend makes the line as good as new.
func (l *line) mend() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = false
	if l.silent != nil {
		close(l.silent)
		l.silent = nil
	}
}

// wire is a connection over the line.
type wire struct {
	net.Conn
	line   *line
	once   sync.Once
	closed chan struct{}
}

func (w *wire) Read(p []byte) (int, error) {
	n, err := w.Conn.Read(p)
	w.line.mu.Lock()
	silent := w.line.silent
	w.line.mu.Unlock()
	if silent != nil && err == nil {
		select {
		case <-silent:
		case <-w.closed:
			return 0, net.ErrClosed
		}
	}
	return n, err
}

func (w *wire) Close() error {
	w.once.Do(func() { close(w.closed) })
	w.line.mu.Lock()
	delete(w.line.conns, w)
	w.line.mu.Unlock()
	return w.Conn.Close()
}
