package engine_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A tenant has objects whose handlers take long, for example because they wait for a host
// that the tenant names. Whatever the tenant changes meanwhile, the objects of other
// tenants are handled at once, and the last states of its own objects in the end.
func TestSlowHandlersOfOneTenantDoNotDelayOthers(t *testing.T) {
	for name, crowd := range map[string]struct {
		objects, edits int
		field          string
		event          bool
	}{
		"many objects":                    {objects: 20, field: strings.Repeat("x", 250<<10), edits: 1},
		"one object, with event handlers": {objects: 1, field: strings.Repeat("x", 250<<10), edits: 20, event: true},
		"large objects, changed":          {objects: 32, field: strings.Repeat("{", 900<<10), edits: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				last, delayed := map[string]string{}, time.Duration(-1)
				var began time.Time
				var diary sync.Mutex
				handle := func(ctx context.Context, ch *gopf.Change[*Example]) error {
					if ch.Object.Name == "other" {
						delayed = time.Since(began)
						return nil
					}
					select {
					case <-ctx.Done():
						return ctx.Err()
					case <-time.After(time.Minute):
					}
					diary.Lock()
					defer diary.Unlock()
					last[ch.Object.Name] = strings.Join(ch.Object.Spec.Items, "")
					return nil
				}
				x.OnCreate("create", handle)
				x.OnUpdate("update", handle)
				if crowd.event {
					x.OnEvent("event", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
				}
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				for i := range crowd.objects {
					c.Create(t, example(fmt.Sprint("x", i), crowd.field))
				}
				settle()
				for n := range crowd.edits {
					for i := range crowd.objects {
						c.Patch(t, resource, "default", fmt.Sprint("x", i), map[string]any{"spec": map[string]any{"items": []any{fmt.Sprint(n)}}})
					}
				}
				settle()
				began = time.Now()
				c.Create(t, example("other", "a"))
				settle()
				if delayed != 0 {
					t.Errorf("the object of another tenant was handled after %v", delayed)
				}
				time.Sleep(3 * time.Hour)
				want := ""
				if crowd.edits > 0 {
					want = fmt.Sprint(crowd.edits - 1)
				}
				for i := range crowd.objects {
					if got, handled := last[fmt.Sprint("x", i)]; !handled || got != want {
						t.Errorf("x%d: the last handled state is %q, want %q", i, got, want)
					}
				}
			})
		})
	}
}
