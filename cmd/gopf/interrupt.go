package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errInterrupted is why a context ends at the first signal.
var errInterrupted = errors.New("interrupted")

// impatience is how long after the second request gopf may live to kill what it started.
const impatience = 500 * time.Millisecond

// interrupt counts the user's requests to stop: the first asks for an orderly end,
// the second for an immediate one.
type interrupt struct {
	signals chan os.Signal
	first   chan struct{} // closed at the first request
	second  chan struct{} // closed at the second
	signal  os.Signal     // of the first; not to be read before
}

// newInterrupt makes SIGINT, SIGTERM and SIGHUP such requests, for the rest of the
// process's life.
func newInterrupt() *interrupt {
	i := &interrupt{signals: make(chan os.Signal, 2), first: make(chan struct{}), second: make(chan struct{})}
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		i.signal = <-i.signals
		close(i.first)
		<-i.signals
		close(i.second)
		// Whatever is still being waited for, the control plane for example, ends by
		// itself when this process has.
		time.Sleep(impatience)
		os.Exit(exitInterrupted)
	}()
	return i
}

// received is the first signal, for a process that knows SIGINT and SIGTERM.
func (i *interrupt) received() os.Signal {
	if i.signal == os.Interrupt {
		return os.Interrupt
	}
	return syscall.SIGTERM
}

// context ends with errInterrupted at the first request.
func (i *interrupt) context() (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.Background())
	go func() {
		select {
		case <-i.first:
			cancel(errInterrupted)
		case <-ctx.Done():
		}
	}()
	return ctx, func() { cancel(nil) }
}
