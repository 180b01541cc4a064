package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"syscall"
	"time"

	"gopf.dev/gopf"
)

// process is the one that the operator has for itself.
type process struct {
	signals <-chan os.Signal // those that stop the operator
	exit    func(code int)   // ends the process
}

// main runs the operator until it ends, or until a signal: the first stops it, the
// second ends the process.
func (p process) main(op *gopf.Operator, args []string, stdout, stderr io.Writer) int {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan struct{})
	var listening sync.WaitGroup
	listening.Go(func() {
		select {
		case s := <-p.signals:
			cancel(&signalError{s})
		case <-ended:
			return
		}
		p.ignoreEchoes(ended)
		select {
		case <-p.signals:
			fmt.Fprintln(stderr, "Stopped at once by the second signal.")
			p.exit(interrupted)
		case <-ended:
		}
	})
	defer listening.Wait()
	defer close(ended)
	return execute(ctx, command(op, p.exit), args, stdout, stderr)
}

// echo is for how long a signal may come again without anybody having meant it:
// some programs send it to the process and then to its group.
const echo = 200 * time.Millisecond

func (p process) ignoreEchoes(ended <-chan struct{}) {
	over := time.After(echo)
	for {
		select {
		case <-p.signals:
		case <-over:
			return
		case <-ended:
			return
		}
	}
}

// signalError is why a context is done after a signal.
type signalError struct{ signal os.Signal }

func (e *signalError) Error() string { return "stopped by " + e.name() }

func (e *signalError) name() string {
	switch e.signal {
	case os.Interrupt:
		return "SIGINT"
	case syscall.SIGTERM:
		return "SIGTERM"
	}
	return e.signal.String()
}

// stopping is how an operator stops when its context is done.
type stopping struct {
	log   *slog.Logger
	limit func() time.Duration // how long it may take; 0 is without a limit
	exit  func(code int)       // ends the process; nil for never
}

// supervise runs a function until it returns. When the context is done, it first
// tells why, then lets the function know, and then sees to it that it does not
// take too long.
func (s stopping) supervise(ctx context.Context, run func(context.Context) error) error {
	inner, cancel := context.WithCancelCause(context.WithoutCancel(ctx))
	defer cancel(nil)
	ended := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		select {
		case <-ctx.Done():
		case <-ended:
			return
		}
		why := context.Cause(ctx)
		var signal *signalError
		if errors.As(why, &signal) {
			s.log.Info("Signal " + signal.name() + " is received. Operator is stopping.")
		}
		cancel(why)
		s.enforce(ended)
	})
	defer watching.Wait()
	defer close(ended)
	return run(inner)
}

// enforce ends the process unless the operator ends in time.
func (s stopping) enforce(ended <-chan struct{}) {
	limit := s.limit()
	if s.exit == nil || limit <= 0 {
		return
	}
	late := time.NewTimer(limit)
	defer late.Stop()
	select {
	case <-ended:
	case <-late.C:
		s.log.Error("The operator has not stopped in time: the process ends now, whatever is unfinished.", "limit", limit)
		s.exit(overdue)
	}
}
