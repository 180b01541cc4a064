package kit

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// Operator is an operator that runs in the process of the test.
type Operator struct {
	Log    *Logbook
	Cancel context.CancelFunc // stops it
	Ended  chan struct{}      // closed when it has stopped
	Err    error              // its error; read it only after Ended is closed
	t      *testing.T
}

// Start runs an operator until it is stopped, or until the test ends. The operator may
// return an error.
func Start(t *testing.T, log *Logbook, run func(context.Context, *slog.Logger) error) *Operator {
	t.Helper()
	ctx, cancel := context.WithCancel(context.WithoutCancel(t.Context()))
	o := &Operator{t: t, Log: log, Cancel: cancel, Ended: make(chan struct{})}
	go func() {
		defer close(o.Ended)
		o.Err = run(ctx, log.Logger())
	}()
	t.Cleanup(o.Stop)
	return o
}

// Run is Start for an operator that must not fail.
func Run(t *testing.T, log *Logbook, run func(context.Context, *slog.Logger) error) *Operator {
	t.Helper()
	return Start(t, log, func(ctx context.Context, log *slog.Logger) error {
		err := run(ctx, log)
		if err != nil {
			t.Errorf("the operator failed: %v", err)
		}
		return err
	})
}

// Stop stops the operator gracefully and waits for it.
func (o *Operator) Stop() {
	o.t.Helper()
	o.Cancel()
	select {
	case <-o.Ended:
	case <-time.After(Patience):
		o.t.Errorf("the operator did not stop within %v", Patience)
	}
}

// Wait waits until the operator stops, and returns its error.
func (o *Operator) Wait() error {
	o.t.Helper()
	select {
	case <-o.Ended:
	case <-time.After(Patience):
		o.t.Fatalf("the operator did not stop within %v", Patience)
	}
	return o.Err
}
