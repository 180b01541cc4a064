package engine_test

import (
	"context"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The operator is about to remove the finalizer from an object that matches no filter.
// At this moment, another client makes it match again.
func TestTheFinalizerStaysOnAnObjectThatMatchesAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource).WithLabel("managed", gopf.Is("yes"))
		x.OnCreate("make", diary.handler("make"))
		x.OnDelete("drop", diary.handler("drop"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		obj := example("x", "a")
		obj.SetLabels(map[string]string{"managed": "yes"})
		c.Create(t, obj)
		time.Sleep(time.Minute)
		label := func(v any) {
			c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"labels": map[string]any{"managed": v}}})
		}
		// Another client restores the label while the removal of the finalizer is in flight …
		c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).Nth(1), gopftest.Before(func(gopftest.Request) { label("yes") }))
		// … and deletes the object a moment later, before the finalizer is back.
		c.Fault(gopftest.Requests("patch", "kopfexamples").Where(ours).Nth(3), gopftest.Before(func(gopftest.Request) { c.Delete(t, resource, "default", "x") }))
		label(nil)
		time.Sleep(time.Hour)
		_, there := c.Lookup(t, resource, "default", "x")
		for _, r := range c.Writes("kopfexamples") {
			t.Logf("%s %d %s", r.Verb, r.Code, r.Body)
		}
		if got := diary.all(); !there && !slices.Contains(got, "drop delete a") {
			t.Errorf("the object matched again before its deletion, but the deletion was not handled: %q", got)
		}
	})
}

// Another client changes the status of the object before each of the first 30 writes.
func TestConflictsAreRetriedQuicklyWithoutErrors(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var n atomic.Int32
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("make", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.SetResult("done")
			return nil
		})
		c.Fault(gopftest.Requests("patch", "kopfexamples").Subresource("status").First(30), gopftest.Before(func(gopftest.Request) {
			n.Add(1)
			c.PatchStatus(t, resource, "default", "x", map[string]any{"status": map[string]any{"beat": n.Load()}})
		}))
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		begun := time.Now()
		for time.Since(begun) < 5*time.Second {
			if s, _ := get(t, c, "x").Object["status"].(map[string]any); s["make"] != nil {
				if n.Load() != 30 || log.has("ERROR") || log.has("Throttling") {
					t.Errorf("after %d conflicts the log has errors", n.Load())
				}
				return
			}
			time.Sleep(10 * time.Millisecond)
		}
		t.Errorf("not written within 5 s, after %d conflicts", n.Load())
	})
}
