package kit

import (
	"context"
	"log/slog"
	"testing"
	"time"
)

// Operator is one that runs in the process of the test.
type Operator struct {
	Log    *Logbook
	Cancel context.CancelFunc // asks it to end
	Ended  chan struct{}      // closed at its end
	Err    error              // what it ended with; after its end
	t      *testing.T
}

// Start runs an operator until it is stopped, at the latest at the end of the test.
// It may end with an error.
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

// Run is Start of an operator that must not fail.
func Run(t *testing.T, log *Logbook, run func(context.Context, *slog.Logger) error) *Operator {
	t.Helper()
	return Start(t, log, func(ctx context.Context, log *slog.Logger) error {
		err := run(ctx, log)
		if err != nil {
			t.Errorf("the operator has failed: %v", err)
		}
		return err
	})
}

// Stop ends the operator gracefully and waits for that.
func (o *Operator) Stop() {
	o.t.Helper()
	o.Cancel()
	select {
	case <-o.Ended:
	case <-time.After(Patience):
		o.t.Errorf("the operator does not end within %v", Patience)
	}
}

// Wait waits for the end of the operator, and returns what it ended with.
func (o *Operator) Wait() error {
	o.t.Helper()
	select {
	case <-o.Ended:
	case <-time.After(Patience):
		o.t.Fatalf("the operator does not end within %v", Patience)
	}
	return o.Err
}
