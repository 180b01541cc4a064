package handling_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
)

// Somebody may ask for a delayed handler while the object pauses after an error.
func TestAHandlerCanBeWokenWhileItsObjectPausesAfterAnError(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Networking.ErrorBackoffs = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{2 * time.Second}
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.Event[*Example]) error {
		if e.Object.Status["phase"] != nil {
			e.Patch.Label("seen", "yes")
		}
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Hour, "it is not there yet")
		}
		return nil
	})
	struck := false
	o := s.start(op, func(_ int, w write) mishap {
		if struck || !strings.Contains(w.body, "seen") {
			return ""
		}
		struck = true
		time.AfterFunc(500*time.Millisecond, func() { x.Wake(s.name, "x") })
		return refused
	})
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create #0")
	o.staysQuiet(t, d)
	s.patch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status")
	d.waitFor(t, "create #1")
}

// The news that the object is being deleted may come while no pause is made, or
// together with the end of one.
func TestARefusedChangeIsGivenUpAlsoWhenTheNewsComesOutsideOfAPause(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Queueing.ErrorDelays = nil
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Label("what?", "no!")
		return d.handler("create")(ctx, c)
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	s.start(op, nil)
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create create a")
	s.delete(examples, "x")
	s.waitGone(examples, "x")
}
