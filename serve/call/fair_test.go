//go:build unix

package call

import (
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gopf.dev/gopf/serve/spec"
)

// A tenant with many objects must not delay the calls for the objects of others.
func TestNamespacesTakeTurnsForPrograms(t *testing.T) {
	processes := func(n int) func(*spec.Call) { return func(c *spec.Call) { c.Processes = n } }
	for name, c := range map[string]Caller{
		"one process":        NewExec(script("sleep 0.05", processes(1))),
		"several processes":  NewExec(script("sleep 0.05", processes(2))),
		"one kept program":   kept(`sleep 0.05; printf '{"id": %d}\n' $id`),
		"some kept programs": kept(`sleep 0.05; printf '{"id": %d}\n' $id`, processes(2)),
	} {
		t.Run(name, func(t *testing.T) {
			defer c.Close()
			var wg sync.WaitGroup
			defer wg.Wait()
			var ended atomic.Int32
			for range 20 {
				wg.Go(func() {
					if _, err := c.Call(t.Context(), request(nil)); err != nil {
						t.Error(err)
					}
					ended.Add(1)
				})
			}
			time.Sleep(20 * time.Millisecond) // most of them wait
			other := request(nil)
			other.Namespace = "other"
			if _, err := c.Call(t.Context(), other); err != nil {
				t.Error(err)
			}
			if n := ended.Load(); n > 8 {
				t.Errorf("the other namespace waited for %d calls", n)
			}
		})
	}
}
