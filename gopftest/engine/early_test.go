package engine_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// At startup, the operator is busy for long with existing objects, and its backlog is
// full. Objects created meanwhile are handled immediately. Their early events are not
// delivered again after the list.
func TestNewObjectsGoAheadOfALongInitialList(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		const olds = 64 // of 100 KB each: only about 40 of them fit into the backlog
		for i := range olds {
			o := example(fmt.Sprint("old", i), "a")
			o.SetAnnotations(map[string]string{"example.com/big": strings.Repeat("x", 100_000)})
			c.Create(t, o)
		}
		var met, handled, told calls
		op := gopf.New()
		op.Settings.Queueing.WorkerLimit = 2
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Object.Name == "new" {
				handled.add("create %s", ch.Object.Spec.Field)
				return nil
			}
			met.add("%s", ch.Object.Name)
			time.Sleep(2 * time.Second)
			return nil
		})
		x.OnUpdate("update", handled.handler("update"))
		x.OnEvent("event", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			if e.Object.Name == "new" {
				told.add("%s %s@%s", e.Type, e.Object.Spec.Field, e.Object.ResourceVersion)
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		time.Sleep(5 * time.Second)
		c.Create(t, example("new", "a"))
		time.Sleep(3 * time.Second)
		c.Patch(t, resource, "default", "new", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(3 * time.Second)
		c.Delete(t, resource, "default", "new")
		time.Sleep(3 * time.Second)

		early := told.all()
		if n := len(met.all()); n > olds/2 {
			t.Fatalf("%d objects were already handled, so the test proves nothing", n)
		}
		if got, want := handled.all(), []string{"create a", "update update b"}; !slices.Equal(got, want) {
			t.Errorf("handled by then: %q, want %q", got, want)
		}
		if len(early) < 3 || !strings.HasPrefix(early[0], "ADDED a@") || !strings.HasPrefix(early[len(early)-1], "DELETED b@") {
			t.Errorf("events so far: %q", early)
		}
		time.Sleep(5 * time.Minute)
		if all := told.all(); !slices.Equal(all, early) {
			t.Errorf("repeated events: %q after %q", all[len(early):], early)
		}
		if n := len(slices.Compact(slices.Sorted(slices.Values(early)))); n != len(early) {
			t.Errorf("duplicate events: %q", early)
		}
		names := met.all()
		slices.Sort(names)
		if n := len(slices.Compact(names)); n != olds || len(names) != olds {
			t.Errorf("%d calls for %d of the %d objects that existed before", len(names), n, olds)
		}
	})
}
