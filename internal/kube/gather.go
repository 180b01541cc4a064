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
	// busyReads is the number of consecutive quick reads after which a connection is busy.
	busyReads = 16
	// gatherSize is the size of the buffer for data that does not fit the reader's own.
	gatherSize = 64 << 10
)

// pace describes when a connection is busy.
type pace struct {
	quick      time.Duration // a read that waits for less is quick
	worthwhile int           // the bytes that must arrive during a pause, or the connection is not busy
}

// responsePace is for connections with responses. Those to single requests take longer, and one
// response after another must not wait. So only long lists make such a connection busy.
func responsePace() pace { return pace{quick: time.Millisecond, worthwhile: 8 << 10} }

// watchPace is for connections with watches: from 250 events per second on, an event may
// wait for the next ones.
func watchPace() pace { return pace{quick: 4 * time.Millisecond, worthwhile: 3 << 10} }

// gathering is a connection that waits for more data while it is busy. An API server sends
// every object of a list in its own packet, several in a millisecond. Waking a goroutine and
// calling the kernel for each takes an eighth of the time of a restart. A busy connection
// delays data by at most gatherTime. Others are read as usual.
type gathering struct {
	net.Conn
	pace

	reads   int  // the consecutive quick reads
	drained bool // the last read has taken everything that had arrived
	rest    []byte
	buffer  *[gatherSize]byte // of rest; nil means that there is none
}

var gatherBuffers = sync.Pool{New: func() any { return new([gatherSize]byte) }}

// gatherAll returns a dial function for such connections.
func gatherAll(dial dialFunc, p pace) dialFunc {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		conn, err := dial(ctx, network, address)
		if err != nil {
			return nil, err
		}
		return &gathering{Conn: conn, pace: p, drained: true}, nil
	}
}

// Read implements [net.Conn]. As usual, only one goroutine may call it at a time.
func (g *gathering) Read(p []byte) (int, error) {
	if g.buffer != nil {
		return g.take(p), nil
	}
	if g.reads < busyReads || g.drained {
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
	paused := g.reads >= busyReads && g.drained
	if paused {
		time.Sleep(gatherTime) //nolint:forbidigo // closing the connection meanwhile ends the read after it
	}
	began := time.Now()
	n, err := g.Conn.Read(p)
	g.drained = n < len(p)
	if g.reads++; time.Since(began) >= g.quick || paused && g.drained && n < g.worthwhile {
		g.reads = 0
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
