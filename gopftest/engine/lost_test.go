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

// twoHandlers declares a quick and a slow handler for creation and for updates, with or
// without sub-handlers.
func twoHandlers(diary *calls, subs bool) *gopf.Operator {
	op := gopf.New()
	kex := gopf.For[*Example](op, resource)
	quick := diary.handler("quick")
	slow := func(_ context.Context, ch *gopf.Change[*Example]) error {
		diary.add("slow %s %s", ch.Reason, ch.Object.Spec.Field)
		if ch.Retry == 0 {
			return gopf.RetryAfter(time.Minute, errors.New("later"))
		}
		return nil
	}
	if subs {
		kex.On(gopf.Create|gopf.Update, "parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("quick", quick)
			ch.Sub("slow", slow)
			return nil
		})
		return op
	}
	kex.On(gopf.Create|gopf.Update, "quick", quick)
	kex.On(gopf.Create|gopf.Update, "slow", slow)
	return op
}

func TestNoChangeIsLostToAHandlerThatAlreadyRan(t *testing.T) {
	for name, test := range map[string]struct{ subs, update, restart bool }{
		"creation":                              {},
		"creation, restart in between":          {restart: true},
		"creation, sub-handlers":                {subs: true},
		"creation, sub-handlers, restart":       {subs: true, restart: true},
		"update":                                {update: true},
		"update, restart in between":            {update: true, restart: true},
		"update, sub-handlers":                  {update: true, subs: true},
		"update, sub-handlers, restart between": {update: true, subs: true, restart: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				stop := gopftest.Start(t, twoHandlers(&diary, test.subs), c)
				settle()
				c.Create(t, example("x", "v1"))
				want := []string{"quick create v1", "slow create v1"}
				if test.update {
					time.Sleep(time.Hour)
					c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v2"}})
					want = append(want, "slow create v1", "quick update v2", "slow update v2")
				}
				time.Sleep(10 * time.Second)
				// The quick handler is done. Now the object changes while the slow one runs.
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v3"}})
				if test.restart {
					stop()
					gopftest.Start(t, twoHandlers(&diary, test.subs), c)
				}
				time.Sleep(time.Hour)
				reason := "create"
				if test.update {
					reason = "update"
				}
				// The slow handler has seen the final state, and is not called again for it.
				want = append(want, "slow "+reason+" v3", "quick update v3")
				if got := diary.all(); !slices.Equal(got, want) {
					t.Errorf("calls:\ngot  %q\nwant %q", got, want)
				}
				checkSettled(t, c, "v3")
			})
		})
	}
}

func TestAChangeTakenBackWhileHandledIsToldToThoseWhoSawIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		gopftest.Start(t, twoHandlers(&diary, false), c)
		settle()
		c.Create(t, example("x", "v1"))
		time.Sleep(time.Hour)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v2"}})
		time.Sleep(10 * time.Second)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v1"}})
		time.Sleep(time.Hour)
		got := diary.all()
		if i := slices.Index(got, "quick update v2"); i < 0 || !slices.Contains(got[i:], "quick update v1") {
			t.Errorf("the quick handler did not see the change back: %q", got)
		}
		checkSettled(t, c, "v1")
	})
}

// One sub-handler saw the change, the other did not, and the change is reverted. It is
// made again just before the operator records the reversal. The base then equals the
// state that the first sub-handler saw: only the note records that the second one missed
// the change.
func TestAChangeTakenBackAndMadeAgainReachesTheSubHandlerThatMissedIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		gopftest.Start(t, twoHandlers(&diary, true), c)
		settle()
		set := func(field string) {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
		}
		c.Create(t, example("x", "v1"))
		time.Sleep(time.Hour)
		set("v2")
		time.Sleep(10 * time.Second)
		before := len(diary.all())
		c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).Nth(1), gopftest.Before(func(gopftest.Request) { set("v2") }))
		set("v1")
		time.Sleep(time.Hour)
		if got, want := diary.all()[before:], []string{"slow update v2", "slow update v2"}; !slices.Equal(got, want) {
			t.Errorf("calls: got %q, want %q", got, want)
		}
		checkSettled(t, c, "v2")
	})
}

// The parent is a field handler, and the last write does not change its field. The parent
// must still be called for the sub-handler that missed the change.
func TestAFieldHandlerIsCalledForASubHandlerThatMissedAChange(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnField("parent", "spec.field", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("quick", diary.handler("quick"))
			ch.Sub("slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("slow %s %s", ch.Reason, ch.Object.Spec.Field)
				if ch.Retry == 0 {
					return gopf.RetryAfter(time.Minute, errors.New("later"))
				}
				ch.Patch.Set("metadata.labels.slow", "done")
				return nil
			})
			return nil
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "v1"))
		time.Sleep(10 * time.Second)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v2"}})
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"quick create v1", "slow create v1", "slow create v2", "quick update v2"}; !slices.Equal(got, want) {
			t.Errorf("calls: got %q, want %q", got, want)
		}
	})
}

// checkSettled checks that nothing is left to do for the object.
func checkSettled(t *testing.T, c *gopftest.Cluster, field string) {
	t.Helper()
	annotations := get(t, c, "x").GetAnnotations()
	if want := "{\"spec\":{\"field\":\"" + field + "\"}}\n"; annotations[annotated] != want || annotations[bound] == "" || len(annotations) != 2 {
		t.Errorf("annotations: %q, want only the last-handled configuration %q", annotations, want)
	}
}

// The API server executes a write, but its response never arrives, and the connection
// stays open. The handling continues after 5 s, not after the deadline of the request.
func TestAWriteWithoutAResponseIsConfirmedWithinSeconds(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("make")
			ch.Patch.Set("status.made", true)
			return nil
		})
		x.OnDelete("drop", diary.handler("drop"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		f := c.Fault(gopftest.Requests("patch", "kopfexamples"), gopftest.HangAnswer())
		c.Create(t, example("x", "a"))
		time.Sleep(17 * time.Second) // the finalizer, the status, the record
		checkSettled(t, c, "a")
		c.Delete(t, resource, "default", "x")
		time.Sleep(6 * time.Second)
		if _, there := c.Lookup(t, resource, "default", "x"); there {
			t.Error("the object still exists")
		}
		f.Stop()
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"make", "drop delete a"}; !slices.Equal(got, want) {
			t.Errorf("calls: got %q, want %q", got, want)
		}
	})
}
