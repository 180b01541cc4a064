package handling_test

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"
	"time"

	"k8s.io/client-go/rest"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// newOperator makes an operator that recovers from errors faster than usual.
func newOperator() *gopf.Operator {
	op := gopf.New()
	ms := func(ns ...int) (ds []time.Duration) {
		for _, n := range ns {
			ds = append(ds, time.Duration(n)*time.Millisecond)
		}
		return ds
	}
	op.Settings.Networking.ErrorDelays = ms(50, 100, 200)
	op.Settings.Queueing.ErrorDelays = ms(100, 200, 500, 1000)
	op.Settings.Execution.DefaultBackoff = 200 * time.Millisecond
	op.Settings.Peering.Standalone = true // other tests on the same cluster have peerings
	return op
}

// operator is one that runs.
type operator struct {
	*kit.Operator
	t    *testing.T
	wire *wire
}

// start runs the operator in the namespace until it is stopped, killed, or the
// test ends. What is to happen to its writes is decided by fate, if not nil.
func (s *space) start(op *gopf.Operator, fate func(n int, w write) mishap) *operator {
	s.T.Helper()
	o := &operator{t: s.T, wire: &wire{fate: fate, watched: map[string]bool{}, streams: map[io.Closer]bool{}}}
	config := rest.CopyConfig(cluster)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return o.wire.over(next) })
	o.Operator = kit.Run(s.T, kit.NewLogbook(s.T), func(ctx context.Context, log *slog.Logger) error {
		err := op.Run(ctx, gopf.Cluster(config), gopf.Namespaces(s.Name), gopf.Log(log))
		if o.wire.isDead() {
			return nil // there is no saying what a killed one ends with
		}
		return err
	})
	return o
}

// supervise runs operators one after another, the next one when one has died,
// until the context is done. They are told which wire is theirs.
func (s *space) supervise(ctx context.Context, declare func(own func() *wire) *gopf.Operator, fate func(n int, w write) mishap) {
	for ctx.Err() == nil {
		var o *operator
		started := make(chan struct{})
		o = s.start(declare(func() *wire { <-started; return o.wire }), fate)
		close(started)
		for !o.wire.isDead() && ctx.Err() == nil {
			time.Sleep(5 * time.Millisecond)
		}
		o.Stop()
	}
}

// over is the same wire over another transport: operators have several.
func (w *wire) over(next http.RoundTripper) http.RoundTripper {
	return roundTripper(func(r *http.Request) (*http.Response, error) { return w.roundTrip(next, r) })
}

type roundTripper func(*http.Request) (*http.Response, error)

func (f roundTripper) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

// following waits until the operator watches the resources.
func (o *operator) following(plurals ...string) *operator {
	o.t.Helper()
	kit.Eventually(o.t, func() error {
		for _, p := range plurals {
			if !o.wire.isWatched(p) {
				return fmt.Errorf("%s are not watched", p)
			}
		}
		return nil
	})
	return o
}

// kill makes the operator unable to do anything more, as if its process had been
// killed, and buries what is left of it.
func (o *operator) kill() {
	o.wire.die()
	o.Stop()
}

// diary is what handlers note down.
type diary struct{ kit.Diary }

// handler is a function that notes what it saw.
func (d *diary) handler(name string) gopf.ChangeFunc[*Example] {
	return func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("%s %s %s", name, c.Reason, c.Object.Spec.Field)
		return nil
	}
}
