package engine_test

import (
	"context"
	"fmt"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// A tenant creates more objects than the API server lets the operator handle in time.
// Namespaces take turns, so the objects of other tenants do not wait for them.
func TestAFloodOfObjectsOfOneTenantDoesNotDelayOthers(t *testing.T) {
	for name, flood := range map[string]struct {
		objects int
		field   string
	}{
		"small": {600, "x"}, "ten kilobytes": {400, strings.Repeat("x", 10<<10)}, "hundred kilobytes": {200, strings.Repeat("x", 100<<10)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var began time.Time
				var mu sync.Mutex
				handled := map[string]time.Duration{}
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
					mu.Lock()
					defer mu.Unlock()
					handled[ch.Object.Name] = time.Since(began)
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.CreateNamespace(t, "attacker")
				c.Fault(gopftest.Writes("kopfexamples").Where(ours), gopftest.Hold(time.Second))
				for i := range flood.objects {
					made := example(fmt.Sprint("x", i), flood.field)
					made.SetNamespace("attacker")
					c.Create(t, made)
				}
				settle()
				began = time.Now()
				c.Create(t, example("other", flood.field))
				time.Sleep(time.Hour)
				if after, ok := handled["other"]; !ok || after > 2*time.Second {
					t.Errorf("the object of another tenant was handled after %v: %v", after, ok)
				}
				if len(handled) != flood.objects+1 {
					t.Errorf("%d objects were handled, want %d", len(handled), flood.objects+1)
				}
			})
		})
	}
}

// Small objects can take much memory when they are decoded. If their handlers are slow,
// only as many run as the memory limit of the process allows. The objects of other
// tenants have memory of their own.
func TestSlowHandlersOfManyDenseObjectsAreLimitedByMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	for name, size := range map[string]int{"modest": 900, "large": 2500} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				dense := strings.Repeat(`{"a":1},`, size) // as text: the estimate is the same
				var mu sync.Mutex
				running, most, other := 0, 0, false
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("create", func(ctx context.Context, ch *gopf.Change[*Example]) error {
					mu.Lock()
					if ch.Object.Namespace == "default" {
						other = true
					}
					running++
					most = max(most, running)
					mu.Unlock()
					time.Sleep(5 * time.Second)
					mu.Lock()
					defer mu.Unlock()
					running--
					return nil
				})
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.CreateNamespace(t, "attacker")
				for i := range 200 {
					made := example(fmt.Sprint("x", i), dense)
					made.SetNamespace("attacker")
					c.Create(t, made)
				}
				settle()
				if most == 0 || most > 50 {
					t.Errorf("%d handlers ran at the same time", most)
				}
				c.Create(t, example("other", strings.Repeat("x", 50<<10)))
				settle()
				if !other {
					t.Error("the object of another tenant waits")
				}
				time.Sleep(time.Hour)
				if got := len(c.List(t, resource, "attacker")); got != 200 || running != 0 || most > 50 {
					t.Errorf("%d objects, %d handlers still run, %d ran at the same time", got, running, most)
				}
			})
		})
	}
}

// A tenant can repeat a panic of a filter with each change of an object, and its log line
// has a stack.
func TestPanicsOfFiltersDoNotFloodTheLog(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.When(func(*gopf.Candidate[*Example]) bool { panic("surprise") }).OnEvent("event", func(context.Context, *gopf.WatchEvent[*Example]) error { return nil })
		var log lines
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		for i := range 500 {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": fmt.Sprint(i)}})
			time.Sleep(20 * time.Millisecond)
		}
		settle()
		panics := 0
		for _, line := range log.text {
			if strings.Contains(line, "surprise") {
				panics++
			}
		}
		if panics == 0 || panics > 20 {
			t.Errorf("%d lines about panics", panics)
		}
	})
}
