package engine_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The deletion event of an object that leaves the selection is small, whatever the object is
// now.
func TestObjectsThatLeftTheSelectionAndGrewWaitForMemory(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		const objects = 24
		op := gopf.New()
		var now, most atomic.Int32
		var released atomic.Bool
		op.AroundTurns(func(ctx context.Context, _ *gopf.Call) (context.Context, func()) {
			if !released.Load() {
				return ctx, func() {} // all of these turns end at the same time
			}
			most.Store(max(most.Load(), now.Add(1)))
			return ctx, func() { now.Add(-1) }
		})
		examples := gopf.For[gopf.Unstructured](op, resource).Select("tier=prod")
		examples.OnCreate("c", func(context.Context, *gopf.Change[gopf.Unstructured]) error { time.Sleep(time.Minute); return nil })
		examples.OnDelete("d", func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil })
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		name := func(i int) string { return fmt.Sprint("o", i) }
		for i := range objects {
			o := example(name(i), "a")
			o.SetLabels(map[string]string{"tier": "prod"})
			c.Create(t, o)
		}
		time.Sleep(5 * time.Second)
		wide := make([]any, 8_000)
		for i := range wide {
			wide[i] = map[string]any{"a": int64(1)}
		}
		for i := range objects {
			c.Patch(t, resource, "default", name(i), map[string]any{"metadata": map[string]any{"labels": map[string]any{"tier": "test"}}})
		}
		for i := range objects {
			c.Patch(t, resource, "default", name(i), map[string]any{"spec": map[string]any{"wide": wide}})
		}
		settle()
		released.Store(true)
		slow := c.Fault(gopftest.Requests("patch", "kopfexamples"), gopftest.Hold(10*time.Second))
		defer slow.Stop()
		time.Sleep(5 * time.Minute) // the handlers end, and the objects are released
		if slow.Struck() == 0 || most.Load() > objects/2 {
			t.Errorf("%d of %d turns run at the same time", most.Load(), objects)
		}
		for i := range objects {
			if o, ok := c.Lookup(t, resource, "default", name(i)); !ok || len(o.GetFinalizers()) > 0 {
				t.Errorf("%s: exists: %v, finalizers: %v", name(i), ok, o.GetFinalizers())
			}
		}
	})
}
