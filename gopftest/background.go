package gopftest

import (
	"context"
	"sync"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// DaemonCall is one call of a daemon in a test; see [Daemon].
type DaemonCall[T gopf.Object] struct {
	*gopf.Daemon[T]
	*Call[T]
	accompanied
}

// Daemon returns the argument for one call of a daemon; see [Change]. Pass the call's
// context to the daemon. Stop cancels that context:
//
//	call := gopftest.Daemon(t, cluster, database)
//	go func() { done <- watchDatabase(call.Context(), call.Daemon) }()
//	…
//	call.Stop()
//	err := <-done
func Daemon[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *DaemonCall[T] {
	t.Helper()
	call, o := newCall(t, c, obj, opts)
	beside := call.accompany(o, false)
	arg, err := gopf.TestArguments[T]{}.Daemon(beside.call)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &DaemonCall[T]{arg, call, beside}
}

// TickCall is one call of a timer in a test; see [Tick].
type TickCall[T gopf.Object] struct {
	*gopf.Tick[T]
	*Call[T]
	accompanied
}

// Tick returns the argument for one call of a timer; see [Change].
func Tick[T gopf.Object](t testing.TB, c *Cluster, obj T, opts ...CallOption) *TickCall[T] {
	t.Helper()
	call, o := newCall(t, c, obj, opts)
	beside := call.accompany(o, true)
	arg, err := gopf.TestArguments[T]{}.Tick(beside.call)
	if err != nil {
		t.Fatal(err)
	}
	call.subject = arg.Subject
	return &TickCall[T]{arg, call, beside}
}

// accompanied is a daemon or timer call made by the framework's own code. The
// framework's side of the call blocks until the test ends.
type accompanied struct {
	context func() context.Context
	call    *daemon.Call
	see     func(deleted bool)
}

// Context returns the context of the call. [context.Cause] returns why it was canceled.
func (a accompanied) Context() context.Context { return a.context() }

// Stop asks the daemon or timer to stop, as the deletion of its object does.
func (a accompanied) Stop() { a.see(true) }

// See shows the call the present state of the object in the cluster: from then on,
// Current returns it.
func (a accompanied) See() { a.see(false) }

// accompany starts a daemon or timer that only hands out its arguments, and keeps it
// running until the test ends.
func (c *Call[T]) accompany(o callOptions, timer bool) accompanied {
	c.t.Helper()
	var given accompanied
	called, over := make(chan struct{}), make(chan struct{})
	spec := &daemon.Spec{
		Handler: &handler.Handler{Family: handler.Background, ID: o.id}, Timer: timer,
		Call: func(ctx context.Context, call *daemon.Call) error {
			given.context, given.call = func() context.Context { return ctx }, call
			close(called)
			<-over
			return nil
		},
	}
	clock := alarm.New((*daemon.Task).Ring)
	set := daemon.NewSet(daemon.Config{
		Specs: []*daemon.Spec{spec}, Clock: clock, Wake: func(string) {},
		Write: func(ctx context.Context, b *object.Body, p *patch.Patch, _ bool) (*object.Body, error) {
			return c.write(ctx, b, p)
		},
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() { clock.Run(ctx) })
	first := *c.req
	request := func(b *object.Body) *handler.Request {
		r := first
		r.Body = b
		return &r
	}
	sight := func(kept *daemon.Object, body *object.Body) *daemon.Object {
		kept, _ = set.Sight(kept, daemon.Sighting{Request: request(body), Changed: true, Again: request})
		return kept
	}
	kept := sight(nil, c.req.Body)
	c.t.Cleanup(func() {
		close(over)
		set.Exit(ctx)
		cancel()
		running.Wait()
	})
	<-called
	c.req = given.call.Request
	c.req.Retry, c.req.Started = o.retry, o.started
	given.see = func(deleted bool) {
		c.t.Helper()
		body := c.now()
		if deleted {
			body = c.deleted(body)
		}
		kept = sight(kept, body)
	}
	return given
}
