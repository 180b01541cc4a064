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

// All handlers know the operator's own writes before the last turn of a handling. Its
// writes in the last turn are an update, as in Kopf.
func TestALabelSetDuringAHandlingIsNoUpdate(t *testing.T) {
	for _, where := range placements {
		t.Run(where.name, func(t *testing.T) {
			for name, test := range map[string]struct {
				last bool
				want []string
			}{
				"by the first handler": {false, []string{"first create a", "second create a", "second create a"}},
				"by the last handler":  {true, []string{"first create a", "second create a", "second create a", "update update a"}},
			} {
				t.Run(name, func(t *testing.T) {
					t.Parallel()
					bubble(t, func(t *testing.T, c *gopftest.Cluster) {
						var diary calls
						op := gopf.New()
						where.choose(&op.Settings.Persistence)
						x := gopf.For[*Example](op, resource)
						note := func(name string, label bool, failures int) gopf.ChangeFunc[*Example] {
							return func(_ context.Context, ch *gopf.Change[*Example]) error {
								diary.add("%s %s %s", name, ch.Reason, ch.Object.Spec.Field)
								if ch.Retry < failures {
									return gopf.RetryAfter(time.Minute, errors.New("later"))
								}
								if label {
									ch.Patch.Label("made-by", name)
								}
								return nil
							}
						}
						x.OnCreate("first", note("first", !test.last, 0))
						x.OnCreate("second", note("second", test.last, 1))
						x.OnUpdate("update", note("update", false, 0))
						gopftest.Start(t, op, c, gopf.Log(quiet()))
						settle()
						c.Create(t, example("x", "a"))
						time.Sleep(time.Hour)
						if got := diary.all(); !slices.Equal(got, test.want) {
							t.Errorf("got %q, want %q", got, test.want)
						}
						if get(t, c, "x").GetLabels()["made-by"] == "" {
							t.Error("the label is missing")
						}
					})
				})
			}
		})
	}
}

// The first request stores the result in the note. The rest of the change is already on
// the object, so there is no second request for it. The result must still be sent.
func TestAResultIsWrittenIfTheRestOfTheChangeHasNoEffect(t *testing.T) {
	for _, where := range placements {
		t.Run(where.name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				op := gopf.New()
				where.choose(&op.Settings.Persistence)
				x := gopf.For[*Example](op, resource)
				x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
					ch.Patch.Annotate("made", "yes")
					ch.Sub("edit", func(_ context.Context, ch *gopf.Change[*Example]) error {
						ch.Patch.Edit(func(o *Example) { o.Annotations["made"] = "yes" })
						if ch.Retry == 0 {
							return gopf.RetryAfter(time.Minute, errors.New("later"))
						}
						return nil
					})
					ch.SetResult("done")
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Hour)
				if status, _ := get(t, c, "x").Object["status"].(map[string]any); status["make"] != "done" {
					t.Errorf("the status is %v", status)
				}
			})
		})
	}
}

func TestATimerWithoutNewChangesWritesOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		gopf.For[*Example](op, resource).Timer("tick", time.Minute, func(_ context.Context, tick *gopf.Tick[*Example]) error {
			tick.Patch.Set("status.phase", "Ready")
			return nil
		}, gopf.Optional())
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.DelayEvents(20*time.Millisecond))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		if n := patches(c); n != 1 {
			t.Errorf("%d writes, want 1", n)
		}
	})
}

// An update supersedes a resume handling and removes its records. Sub-handlers that take
// part in both must keep theirs.
func TestASubHandlerOfASupersededHandlingIsNotCalledTwice(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		start := func() (stop func()) {
			op := gopf.New()
			gopf.For[*Example](op, resource).On(gopf.Create|gopf.Update|gopf.Resume, "parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
				reason := ch.Reason
				ch.Sub("quick", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("quick %s %s", reason, ch.Object.Spec.Field)
					return nil
				})
				ch.Sub("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
					if ch.Retry == 0 {
						return gopf.RetryAfter(time.Minute, errors.New("later"))
					}
					return nil
				})
				return nil
			})
			return gopftest.Start(t, op, c, gopf.Log(quiet()))
		}
		stop := start()
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Hour)
		stop()
		start()
		time.Sleep(10 * time.Second)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "b"}))
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"quick create a", "quick resume a", "quick update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
