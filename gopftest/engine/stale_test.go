package engine_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A paged list takes more than a minute (API servers before 1.32, or after a failed
// streamed list). Its items are older than the writes made meanwhile.
func TestASlowListDoesNotRunHandlersAgain(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name != "zz" {
				return nil
			}
			diary.add("make zz #%d", ch.Retry)
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Minute, errors.New("later"))
			}
			return nil
		})
		for i := range 1900 {
			c.Create(t, example(fmt.Sprintf("o%04d", i), "a"))
		}
		c.Fault(gopftest.Requests("watch", "kopfexamples").Where(func(r gopftest.Request) bool { return strings.Contains(r.Path, "sendInitialEvents") }), gopftest.Fail(422))
		// As in any real cluster, opening a watch takes a moment.
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.Hold(20*time.Millisecond))
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(10 * time.Minute)
		c.Create(t, example("zz", "a")) // is due again in a minute
		time.Sleep(55 * time.Second)
		// The API is slow: 25 s for a page of 500. Then the watch expires.
		c.Fault(gopftest.Requests("list", "kopfexamples").Where(func(r gopftest.Request) bool { return strings.Contains(r.Path, "continue") }), gopftest.Hold(25*time.Second))
		c.Fault(gopftest.Requests("watch", "kopfexamples").First(1), gopftest.Fail(410))
		c.CutStreams()
		time.Sleep(2 * time.Hour)
		if got := diary.all(); !slices.Equal(got, []string{"make zz #0", "make zz #1"}) {
			t.Errorf("got %q; taken for a loss of the stored state: %v", got, log.has("The state that the operator had stored on the object is gone"))
		}
	})
}

func TestAReplayedEventDoesNotReplaceANewerOneThatWaits(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		op.Settings.Queueing.WorkerLimit = 1
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "work", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("%s %s", ch.Object.Name, ch.Object.Spec.Field)
			if ch.Object.Name == "busy" {
				time.Sleep(30 * time.Second)
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		c.Create(t, example("busy", "a"))
		time.Sleep(10 * time.Second)
		f := c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.ReplayEvents())
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Second)
		f.Stop()
		time.Sleep(time.Hour)
		if got := diary.all(); !slices.Contains(got, "x b") {
			t.Errorf("the last state of x was not handled within an hour: %q", got)
		}
	})
}

// Items listed while a deletion handler runs are from before the removal of the
// finalizer.
func TestADeletionIsHandledOnceAlthoughAListComesMeanwhile(t *testing.T) {
	for _, how := range []string{"relist", "pause"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
					diary.add("drop %s", ch.Object.ResourceVersion)
					time.Sleep(20 * time.Second)
					return nil
				})
				x.Timer("tick", time.Hour, func(context.Context, *gopf.Tick[*Example]) error { return nil }, gopf.Optional())
				// As in any real cluster, an event arrives a bit later than the response to the write.
				c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.DelayEvents(20*time.Millisecond))
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				c.Delete(t, resource, "default", "x")
				time.Sleep(10 * time.Second)
				if how == "relist" {
					c.Fault(gopftest.Requests("watch", "kopfexamples").First(1), gopftest.Fail(410))
					c.CutStreams()
				} else {
					op.Pause("for a moment")
					time.Sleep(time.Second)
					op.Unpause()
				}
				time.Sleep(time.Hour)
				if got := diary.all(); len(got) != 1 {
					t.Errorf("the deletion was handled %d times: %q", len(got), got)
				}
				if _, there := c.Lookup(t, resource, "default", "x"); there {
					t.Error("the object still exists")
				}
			})
		})
	}
}

// A standby replica only fills its indices and has acted on no state.
func TestOlderEventsDoNotChangeTheIndicesOfAStandby(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		leader := gopf.New() // it leads, and never writes to the object
		leader.Settings.Election.Enabled, leader.Settings.Election.Name, leader.Settings.Peering.Standalone = true, "example", true
		standby, x := replica(&diary, "standby")
		seen := gopf.Index(x, "names", func(_ context.Context, s *gopf.Subject[*Example]) (map[string]string, error) {
			return map[string]string{s.Object.GetName(): s.Object.Spec.Field}, nil
		})
		gopftest.Start(t, leader, c, gopf.Log(quiet()))
		settle()
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.ReplayEvents())
		gopftest.Start(t, standby, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		for _, field := range []string{"b", "c", "d"} {
			time.Sleep(time.Minute)
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
			time.Sleep(time.Minute)
			if got, _ := seen.One("x"); got != field {
				t.Errorf("the index of the standby has %q, want %q", got, field)
			}
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		if seen.Has("x") {
			t.Error("the deleted object is in the index")
		}
	})
}
