package main

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"syscall"
	"time"
)

// errInterrupted is the cause of a context canceled by the first signal.
var errInterrupted = errors.New("interrupted")

// impatience is the time after the second signal to kill the processes that gopf started.
const impatience = 500 * time.Millisecond

// interrupt counts the signals of the user. The first one requests a graceful shutdown, the
// second one an immediate exit.
type interrupt struct {
	signals chan os.Signal
	first   chan struct{} // closed at the first signal
	second  chan struct{} // closed at the second signal
	signal  os.Signal     // the first signal; read it only after first is closed
}

// newInterrupt handles SIGINT, SIGTERM and SIGHUP until the process exits.
func newInterrupt() *interrupt {
	i := &interrupt{signals: make(chan os.Signal, 2), first: make(chan struct{}), second: make(chan struct{})}
	signal.Notify(i.signals, os.Interrupt, syscall.SIGTERM, syscall.SIGHUP)
	go func() {
		i.signal = <-i.signals
		close(i.first)
		<-i.signals
		close(i.second)
		// Whatever still runs, for example the control plane, ends by itself when this
		// process has exited.
		time.Sleep(impatience)
		os.Exit(exitInterrupted)
	}()
	return i
}

// received returns the first signal, reduced to SIGINT or SIGTERM.
func (i *interrupt) received() os.Signal {
	if i.signal == os.Interrupt {
		return os.Interrupt
	}
	return syscall.SIGTERM
}

// context returns a context that is canceled with errInterrupted at the first signal.
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
