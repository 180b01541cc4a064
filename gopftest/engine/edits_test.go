package engine_test

import (
	"context"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestLostEditsAreReportedForEveryKindOfHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op, log := gopf.New(), &lines{}
		x := gopf.For[*Example](op, resource)
		edit := func(s *gopf.Subject[*Example]) error {
			s.Object.Spec.Field = "edited"
			return nil
		}
		x.OnCreate("change", func(_ context.Context, c *gopf.Change[*Example]) error {
			c.Sub("sub", func(_ context.Context, c *gopf.Change[*Example]) error { return edit(c.Subject) })
			return edit(c.Subject)
		})
		x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error { return edit(e.Subject) })
		x.Timer("timer", time.Minute, func(_ context.Context, t *gopf.Tick[*Example]) error { return edit(t.Subject) })
		x.Daemon("daemon", func(_ context.Context, d *gopf.Daemon[*Example]) error { return edit(d.Subject) })
		x.Mutate("review", func(_ context.Context, r *gopf.Review[*Example]) error { return edit(r.Subject) })
		x.Daemon("flushing", func(ctx context.Context, d *gopf.Daemon[*Example]) error {
			d.Object.Spec.Items = []string{"a"}
			d.Patch.Set("spec.items", d.Object.Spec.Items)
			return d.Flush(ctx)
		})
		x.OnCreate("patching", func(_ context.Context, c *gopf.Change[*Example]) error {
			c.Patch.Set("status.done", true)
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		c.Create(t, example("y", "a"))
		time.Sleep(time.Hour)
		for _, id := range []string{"change", "change/sub", "event", "timer", "daemon", "review"} {
			if got := log.count("Handler '" + id + "' modified c.Object (spec.field); such edits are lost. Use c.Patch."); got != 1 {
				t.Errorf("%s: got %d reports", id, got)
			}
		}
		if got := log.count("such edits are lost"); got != 6 {
			t.Errorf("got %d reports", got)
		}
	})
}
