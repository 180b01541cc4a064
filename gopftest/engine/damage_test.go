package engine_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A damaged record costs one call of its own handler. The other handlers continue.
func TestADamagedRecordRestartsOnlyItsHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		declare := func() *gopf.Operator {
			op := gopf.New()
			x := gopf.For[*Example](op, resource)
			x.OnCreate("done", diary.handler("done"))
			x.OnCreate("damaged", diary.handler("damaged"))
			x.OnCreate("waiting", diary.failing("waiting", 1, time.Hour))
			x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
				for _, id := range []string{"one", "two"} {
					ch.Sub(id, func(context.Context, *gopf.Change[*Example]) error {
						diary.add("sub %s", id)
						return nil
					})
				}
				ch.Sub("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
					if ch.Retry == 0 {
						return gopf.RetryAfter(time.Hour, errors.New("not yet"))
					}
					return nil
				})
				return nil
			})
			return op
		}
		stop := gopftest.Start(t, declare(), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		before := diary.all()
		c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": map[string]any{
			"kopf.zalando.org/damaged": "{oops", "kopf.zalando.org/parent.one": `{"started":"never"}`,
		}}})
		gopftest.Start(t, declare(), c, gopf.Log(log.logger()))
		time.Sleep(3 * time.Hour)
		again := diary.all()[len(before):]
		slices.Sort(again)
		if want := []string{"damaged create a", "sub one", "waiting create a #1"}; !slices.Equal(again, want) {
			t.Errorf("calls after the damage: %q, want %q; before: %q", again, want, before)
		}
		if !log.has("cannot be read", "kopf.zalando.org/damaged") {
			t.Error("the damage was not logged")
		}
	})
}
