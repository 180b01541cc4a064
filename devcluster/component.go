package main

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// errEnded says that a component returned although nobody asked it to.
var errEnded = errors.New("it ended by itself")

// component is a part of Kubernetes that runs in this process until it is stopped.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{} // closed when run returned
	err    error         // what it returned; to be read after done
}

// startComponent calls run in a goroutine of its own, with a context that stop ends.
func startComponent(name string, run func(context.Context) error) *component {
	// Not derived from the process's context: the parts stop one after the other.
	ctx, cancel := context.WithCancel(context.Background())
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		c.err = run(ctx)
	}()
	return c
}

// await asks ready every few milliseconds until it has no objection, the component
// ends, ctx ends or a minute has passed.
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

// ended is the reason why the component is not running, once done is closed.
func (c *component) ended() error {
	return fmt.Errorf("%s failed: %w", c.name, errors.Join(c.err, errEnded))
}

// stop asks the component to end and gives it a moment. One that takes longer is
// left behind: its state is in etcd, and the process is about to exit anyway.
func (c *component) stop() {
	c.cancel()
	select {
	case <-c.done:
	case <-time.After(stopComponent):
	}
}
