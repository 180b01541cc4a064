package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errEnded means that a component returned before it was stopped.
var errEnded = errors.New("it ended by itself")

// component is a part of Kubernetes that runs in this process until it is stopped.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when run has returned
	err    error         // the error of run; valid after done
}

// startComponent calls run in a goroutine, with a context that stop cancels.
func startComponent(name string, run func(context.Context) error) *component {
	// The context is not derived from that of the process: the components stop one
	// after another.
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	return c
}

// await calls ready every few milliseconds until it returns no error, the component
// ends, ctx is done or a minute has passed.
func (c *component) await(ctx context.Context, what string, ready func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, time.Minute, errors.New("a minute has passed"))
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
			return fmt.Errorf("wait until %s: %w (last answer: %w)", what, context.Cause(ctx), err)
		case <-tick.C:
		}
	}
}

// ended returns the reason why the component is not running. done must be closed.
func (c *component) ended() error {
	return fmt.Errorf("%s failed: %w", c.name, errors.Join(c.err, errEnded))
}

// stop ends the component and waits for it for a moment. A component that takes longer
// is abandoned: its state is in etcd, and the process is about to exit.
func (c *component) stop() {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(stopComponent):
	}
}
