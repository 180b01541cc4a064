package handling_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// A handler may ask for a change that the API server refuses. It failed then, and the
// object can be deleted all the same.
func TestAChangeThatIsRefusedDoesNotKeepTheObjectFromBeingDeleted(t *testing.T) {
	t.Parallel()
	for name, ask := range map[string]func(*gopf.Change[*Example]){
		"an invalid label":       func(c *gopf.Change[*Example]) { c.Patch.Label("what?", "no!") },
		"another name":           func(c *gopf.Change[*Example]) { c.Patch.Set("metadata.name", "y") },
		"a spec of a wrong type": func(c *gopf.Change[*Example]) { c.Patch.Set("spec", 42) },
		"an edit that panics":    func(c *gopf.Change[*Example]) { c.Patch.Edit(func(e *Example) { _ = e.Spec.Items[99] }) },
		"an edit to the invalid": func(c *gopf.Change[*Example]) { c.Patch.Edit(func(e *Example) { e.Labels["what?"] = "no!" }) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			x := gopf.For[*Example](op, examples)
			x.OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
				ask(c)
				return d.handler("create")(ctx, c)
			})
			x.OnDelete("delete_fn", d.handler("delete"))
			o := s.start(op, nil)
			s.Create(examples, "x", spec("a"))
			d.WaitFor(t, "create create a")
			kit.Eventually(t, func() error {
				if len(o.Log.With("Handler 'create_fn' failed with an exception")) == 0 {
					return fmt.Errorf("the log does not say that the handler failed")
				}
				return nil
			})
			s.Delete(examples, "x")
			s.waitGone(examples, "x")
			if n := d.Count("delete delete a"); n != 1 {
				t.Errorf("the deletion was handled %d times: %q", n, d.All())
			}
		})
	}
}

// The deletion may come while no delay is pending, or together with the end of one.
func TestARefusedChangeDoesNotHoldUpADeletionOutsideOfADelay(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Queueing.ErrorDelays = []time.Duration{time.Nanosecond}
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Label("what?", "no!")
		return d.handler("create")(ctx, c)
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create create a")
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
}
