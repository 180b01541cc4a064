package engine_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestFaultsOfTheClusterNeitherLoseNorRepeatWork(t *testing.T) {
	writes := gopftest.Writes("kopfexamples").Where(func(r gopftest.Request) bool { return r.Verb == "patch" })
	watches := gopftest.Requests("watch", "kopfexamples")
	for name, fault := range map[string]func(c *gopftest.Cluster){
		"nothing":                       func(*gopftest.Cluster) {},
		"a conflict on the first write": func(c *gopftest.Cluster) { c.Fault(writes.Nth(1), gopftest.Fail(409)) },
		"conflicts on four writes":      func(c *gopftest.Cluster) { c.Fault(writes.First(4), gopftest.Fail(409)) },
		"500 on every other write":      func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.Fail(500)) },
		"503 for twenty writes":         func(c *gopftest.Cluster) { c.Fault(writes.First(20), gopftest.Fail(503)) },
		"429 for a while":               func(c *gopftest.Cluster) { c.Fault(writes.During(20*time.Second), gopftest.Fail(429)) },
		"403 once":                      func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.Fail(403)) },
		"401 once":                      func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.Fail(401)) },
		"422 once":                      func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.Fail(422)) },
		"a connection that breaks":      func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.Drop()) },
		"lost answers to all writes":    func(c *gopftest.Cluster) { c.Fault(writes.From(1), gopftest.LoseAnswer()) },
		"an answer that never comes":    func(c *gopftest.Cluster) { c.Fault(writes.Nth(2), gopftest.HangAnswer()) },
		"garbled answers":               func(c *gopftest.Cluster) { c.Fault(writes.First(2), gopftest.Garble()) },
		"late answers":                  func(c *gopftest.Cluster) { c.Fault(writes.From(1), gopftest.HoldAnswer(5*time.Second)) },
		"late events":                   func(c *gopftest.Cluster) { c.Fault(watches.From(1), gopftest.DelayEvents(8*time.Second)) },
		"events twice":                  func(c *gopftest.Cluster) { c.Fault(watches.From(1), gopftest.DuplicateEvents()) },
		"older events after newer ones": func(c *gopftest.Cluster) { c.Fault(watches.From(1), gopftest.ReplayEvents()) },
		"malformed events":              func(c *gopftest.Cluster) { c.Fault(watches.First(2), gopftest.GarbleEvents()) },
		"streams cut inside of events":  func(c *gopftest.Cluster) { c.Fault(watches.First(3), gopftest.CutInsideEvents()) },
		"watches are 410":               func(c *gopftest.Cluster) { c.Fault(watches.First(2), gopftest.Fail(410)) },
		"watches are 404":               func(c *gopftest.Cluster) { c.Fault(watches.First(2), gopftest.Fail(404)) },
		"watches are 500":               func(c *gopftest.Cluster) { c.Fault(watches.First(2), gopftest.Fail(500)) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				fault(c)
				var diary calls
				op := gopf.New()
				kex := gopf.For[*Example](op, resource)
				kex.OnCreate("a", gopf.WithResult(func(_ context.Context, ch *gopf.Change[*Example]) (string, error) {
					diary.add("a")
					return "made", nil
				}))
				kex.OnCreate("b", diary.failing("b", 1, time.Second))
				kex.OnUpdate("u", diary.handler("u"))
				kex.OnDelete("d", diary.handler("d"))
				gopftest.Start(t, op, c)
				time.Sleep(5 * time.Second)
				c.Create(t, example("x", "v1"))
				time.Sleep(10 * time.Minute)
				checkResult(t, c)
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "v2"}})
				time.Sleep(10 * time.Minute)
				c.Delete(t, resource, "default", "x")
				time.Sleep(10 * time.Minute)
				if _, exists := c.Lookup(t, resource, "default", "x"); exists {
					t.Error("the object still exists")
				}
				want := []string{"a", "b create v1 #0", "b create v1 #1", "u update v2", "d delete v2"}
				if got := diary.all(); !slices.Equal(got, want) {
					t.Errorf("calls:\ngot  %q\nwant %q", got, want)
				}
			})
		})
	}
}

func checkResult(t *testing.T, c *gopftest.Cluster) {
	t.Helper()
	if got := gopftest.Get[*Example](t, c, resource, "default", "x").Status["a"]; got != "made" {
		t.Errorf("the result is %v", got)
	}
}

func TestADeletionThatWasMissedIsToldToEventHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		kex := gopf.For[*Example](op, resource)
		kex.WithField("spec.field", gopf.Is("a")).OnEvent("ev", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			diary.add("%q %v %s", e.Type, e.Missed, e.Object.GetName())
			return nil
		})
		c.Create(t, example("x", "a"))
		c.Create(t, example("other", "b"))
		gopftest.Start(t, op, c)
		settle()
		f := c.Fault(gopftest.Requests("watch", "kopfexamples").From(1), gopftest.Fail(503))
		c.CutStreams()
		c.Delete(t, resource, "default", "x")
		c.Delete(t, resource, "default", "other")
		c.Expire()
		time.Sleep(time.Minute)
		f.Stop()
		time.Sleep(time.Minute)
		if got, want := diary.all(), []string{`"" false x`, `"DELETED" true x`}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestEventHandlersSeeEveryChangeAndAreNotRetried(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnEvent("ev", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			diary.add("%s %s", e.Type, e.Object.Spec.Field)
			return fmt.Errorf("ignored")
		})
		gopftest.Start(t, op, c)
		settle()
		c.Create(t, example("x", "a"))
		for _, field := range []string{"b", "c", "d"} {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
		}
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		want := []string{"ADDED a", "MODIFIED b", "MODIFIED c", "MODIFIED d", "DELETED d"}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if got := patches(c); got != 0 {
			t.Errorf("%d patches by an operator that only watches", got)
		}
	})
}
