package kube

import (
	"context"
	"net"
	"sync"
	"time"
)

const (
	// gatherTime is the pause before a read from a busy connection.
	gatherTime = 4 * time.Millisecond
	// busyReads is the number of consecutive reads after which a connection is busy, if none
	// of them waited for as long as quickRead. Responses to single requests take longer.
	busyReads = 16
	quickRead = time.Millisecond
	// worthwhile is the number of bytes that must arrive during a pause. Otherwise the
	// connection is no longer busy: one response after another must not wait.
	worthwhile = 8 << 10
	// gatherSize is the size of the buffer for data that does not fit the reader's own.
	gatherSize = 64 << 10
)

// gathering is a connection that waits for more data while it is busy. An API server sends
// every object of a list in its own packet, several in a millisecond. Waking a goroutine and
// calling the kernel for each takes an eighth of the time of a restart. A busy connection
// delays data by at most gatherTime. Others are read as usual.
type gathering struct {
	net.Conn

	quick   int  // the consecutive reads that did not wait
	drained bool // the last read has taken everything that had arrived
	rest    []byte
	buffer  *[gatherSize]byte // of rest; nil means that there is none
}

var gatherBuffers = sync.Pool{New: func() any { return new([gatherSize]byte) }}

// gatherAll returns a dial function for such connections.
func gatherAll(dial dialFunc) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gathering{Conn: conn, drained: true}, nil
	}
}

// Read implements [net.Conn]. As usual, only one goroutine may call it at a time.
func (g *gathering) Read(p []byte) (int, error) {
	if g.buffer != nil {
		return g.take(p), nil
	}
	if g.quick < busyReads || g.drained {
		return g.read(p)
	}
	// More has arrived than the reader asked for, so this does not wait.
	g.buffer = gatherBuffers.Get().(*[gatherSize]byte)
	n, err := g.read(g.buffer[:])
	g.rest = g.buffer[:n]
	if err != nil && n == 0 {
		g.release()
		return 0, err
	}
	return g.take(p), nil // an error comes again
}

// read reads from the connection. It waits before that if the connection is busy.
func (g *gathering) read(p []byte) (int, error) {
	paused := g.quick >= busyReads && g.drained
	if paused {
		time.Sleep(gatherTime) //nolint:forbidigo // closing the connection meanwhile ends the read after it
	}
	began := time.Now()
	n, err := g.Conn.Read(p)
	g.drained = n < len(p)
	if g.quick++; time.Since(began) >= quickRead || paused && g.drained && n < worthwhile {
		g.quick = 0
	}
	return n, err
}

// take copies the rest, and releases the buffer at its end.
func (g *gathering) take(p []byte) int {
	n := copy(p, g.rest)
	if g.rest = g.rest[n:]; len(g.rest) == 0 {
		g.release()
	}
	return n
}

func (g *gathering) release() {
	gatherBuffers.Put(g.buffer)
	g.buffer, g.rest = nil, nil
}
