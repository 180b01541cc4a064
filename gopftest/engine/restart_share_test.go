package engine_test

import (
	"context"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// After a start, the objects of all namespaces are in one list. Those of one namespace fill the
// queue, and their handlers take an hour.
func TestSlowHandlersDoNotDelayTheListForOtherNamespaces(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	for _, other := range []string{"before", "later"} { // than the namespace default
		t.Run(other, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				c.CreateNamespace(t, other)
				for i := range 1500 { // 15 MB, with memory for the handlers of about 500
					c.Create(t, example(fmt.Sprint("slow-", i), strings.Repeat("x", 10_000)))
				}
				in := func(name string) *unstructured.Unstructured {
					o := example(name, "x")
					o.SetNamespace(other)
					return o
				}
				for _, name := range []string{"changed", "deleted"} {
					c.Create(t, in(name))
				}
				var mu sync.Mutex
				called := map[string]time.Time{}
				handle := func(ctx context.Context, ch *gopf.Change[gopf.Unstructured]) error {
					if ch.Object.GetNamespace() == other {
						mu.Lock()
						defer mu.Unlock()
						called[ch.Reason.String()+" "+ch.Object.GetName()] = time.Now()
						return nil
					}
					select {
					case <-ctx.Done():
					case <-time.After(time.Hour):
					}
					return nil
				}
				op := gopf.New()
				x := gopf.For[gopf.Unstructured](op, resource)
				x.OnCreate("create", handle)
				x.OnUpdate("update", handle)
				x.OnDelete("delete", handle)
				gopftest.Start(t, op, c)
				time.Sleep(5 * time.Second)
				c.Create(t, in("new"))
				c.Patch(t, resource, other, "changed", map[string]any{"spec": map[string]any{"field": "y"}})
				c.Delete(t, resource, other, "deleted")
				time.Sleep(time.Second)
				mu.Lock()
				defer mu.Unlock()
				want := []string{"create changed", "create deleted", "create new", "delete deleted", "update changed"}
				if got := slices.Sorted(maps.Keys(called)); !slices.Equal(got, want) {
					t.Errorf("called: %v, want %v", got, want)
				}
			})
		})
	}
}
