package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errEnded means that a component returned although it was not stopped.
var errEnded = errors.New("it stopped unexpectedly")

// component is a part of Kubernetes that runs in this process until it is stopped.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	err    error         // its error; read it only after done is closed
}

// startComponent calls run in a new goroutine, with a context that stop cancels.
func startComponent(name string, run func(context.Context) error) *component {
	// Not derived from the process's context: the components stop one after the other.
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	return c
}

// await calls ready every few milliseconds until it returns no error, the component ends,
// ctx ends, or a minute has passed.
func (c *component) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("timed out after a minute"))
	defer cancel()
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for {
		err := ready(ctx)
		if err == nil {
			return nil
		}
		select {
		case <-c.done:
			return c.ended()
		case <-ctx.Done():
			return fmt.Errorf("wait until %s: %w (last error: %w)", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// ended returns why the component is not running. Call it only after done is closed.
func (c *component) ended() error {
	return fmt.Errorf("%s failed: %w", c.name, errors.Join(c.err, errEnded))
}

// stop cancels the component and waits a moment. A component that takes longer is
// abandoned: its state is in etcd, and the process is about to exit.
func (c *component) stop() {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(stopComponent):
	}
}
