package controller

import (
	"context"
	"sync"
	"time"

	"gopf.dev/gopf/internal/execute"
)

// patience is the grace period of handlers between the cancellation of their contexts
// and the moment when they are abandoned.
const patience = 5 * time.Second

// Limit is the time in which all handlers of a controller end, except for daemons and
// timers.
func (c Config) Limit() time.Duration { return c.ExitTimeout + c.Process.WriteGrace + patience }

// Limit returns the time in which all handlers, daemons and timers end.
func (c *Controller) Limit() time.Duration { return max(c.config.Limit(), c.daemonLimit()) }

// daemonLimit returns the time in which daemons and timers end. 0 means that there are
// none.
func (c *Controller) daemonLimit() time.Duration {
	if c.processor.Daemons == nil {
		return 0
	}
	return c.processor.Daemons.Patience() + c.config.ExitTimeout + patience
}

// Stop stops the controller together with the operator. It returns when all handlers,
// daemons and timers have ended. last limits only the wait for daemons and timers; see
// [daemon.Set.Exit].
func (c *Controller) Stop(last context.Context) {
	var closing sync.WaitGroup
	closing.Go(c.close)
	if c.processor.Daemons != nil {
		closing.Go(func() { c.processor.Daemons.Exit(last) })
	}
	closing.Wait()
}

// Cancel cancels the contexts of all handlers, and stops daemons and timers. It does
// not wait.
func (c *Controller) Cancel() {
	c.cancel(execute.ErrStopping)
	if c.processor.Daemons != nil {
		c.processor.Daemons.Pause()
	}
}

// Retire stops a controller whose resource is gone or gets another controller. Its
// handlers and daemons have the same grace periods as in a shutdown. Then Retire calls
// retired: from that moment, another controller may serve the same objects. Handlers
// that do not return in time are abandoned, but Retire waits for them.
func (c *Controller) Retire(retired func()) {
	late := time.AfterFunc(c.config.ExitTimeout, func() { c.cancel(execute.ErrStopping) })
	defer late.Stop()
	closed := make(chan struct{})
	go func() { defer close(closed); c.close() }()
	limit := time.NewTimer(c.config.Limit())
	defer limit.Stop()
	select {
	case <-closed:
	case <-limit.C:
		for _, name := range c.Running() {
			c.config.Log.Warn("A handler of a resource that is no longer served did not stop in time and was abandoned.",
				"resource", c.served.Info.String(), "name", name)
		}
	}
	c.abandon()
	if c.processor.Daemons != nil {
		last, end := context.WithTimeout(context.Background(), c.daemonLimit())
		c.processor.Daemons.Exit(last)
		end()
	}
	retired()
	<-closed
}

// close ends the watches and waits for the running turns.
func (c *Controller) close() {
	var turns sync.WaitGroup
	turns.Go(c.queue.Close) // this releases watches that wait for room in the queue
	c.unfollow()
	turns.Wait()
}
