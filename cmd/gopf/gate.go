package main

import (
	"bytes"
	"io"
	"sync"
)

// maxHeld limits the output of the operator that is kept while a shell has the terminal.
const maxHeld = 1 << 20

// gate forwards the output of the operator. While a shell has the terminal, it buffers the
// output. The operator never blocks on it.
type gate struct {
	mu     sync.Mutex
	closed bool
	held   bytes.Buffer
	lost   bool // held is full
}

// to returns a writer through the gate.
func (g *gate) to(w io.Writer) io.Writer { return gatedWriter{g, w} }

// close keeps all further output until open is called.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// open writes the kept output to w.
func (g *gate) open(w io.Writer) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = false
	_, _ = g.held.WriteTo(w) // there is no other place to report it
	if g.lost {
		_, _ = io.WriteString(w, "(more output of the operator was dropped)\n")
	}
	g.lost = false
}

type gatedWriter struct {
	gate *gate
	w    io.Writer
}

// Write implements io.Writer.
func (g gatedWriter) Write(p []byte) (int, error) {
	g.gate.mu.Lock()
	defer g.gate.mu.Unlock()
	if !g.gate.closed {
		return g.w.Write(p)
	}
	if g.gate.held.Len()+len(p) > maxHeld {
		g.gate.lost = true
		return len(p), nil
	}
	return g.gate.held.Write(p)
}
