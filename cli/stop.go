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

// process is the operating system process of the operator.
type process struct {
	signals <-chan os.Signal // signals that stop the operator
	exit    func(code int)   // ends the process
}

// main runs the operator until it ends. The first signal stops it gracefully, the second
// one exits the process.
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
			fmt.Fprintln(stderr, "The second signal stopped the process immediately.")
			p.exit(interrupted)
		case <-ended:
		}
	})
	defer listening.Wait()
	defer close(ended)
	return execute(ctx, command(op, p.exit), args, stdout, stderr)
}

// echo is the time within which a repeated signal is ignored: some programs send a signal
// to the process and then to its group.
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

// signalError is the cause of a context canceled by a signal.
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

// stopping controls the shutdown of an operator when its context is done.
type stopping struct {
	log   *slog.Logger
	limit func() time.Duration // maximum duration of the shutdown; 0 means no limit
	exit  func(code int)       // ends the process; nil means never
}

// supervise runs a function until it returns. When the context is done, it logs the
// reason, cancels the context of the function, and enforces the time limit.
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
		s.log.Error("The operator did not stop in time; exiting with unfinished work.", "limit", limit)
		s.exit(overdue)
	}
}
