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

// A tenant has many small objects whose timers take long, for example because they wait for a
// host that the tenant names. They are all due after the start.
func TestSlowTimersOfOneTenantTakeAPartOfTheMemory(t *testing.T) {
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(256 << 20))
	const objects, fits = 3000, 32 << 20 / (48 << 10) // an eighth of the limit, for calls of 48 KiB
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var mu sync.Mutex
		running, most, called := 0, 0, map[string]int{}
		op := gopf.New()
		gopf.For[*Example](op, resource).Timer("check", time.Hour, func(ctx context.Context, x *gopf.Tick[*Example]) error {
			mu.Lock()
			called[x.Object.Name]++
			tenant := strings.HasPrefix(x.Object.Name, "x-")
			if tenant {
				running++
				most = max(most, running)
			}
			mu.Unlock()
			if tenant {
				time.Sleep(time.Minute)
				mu.Lock()
				running--
				mu.Unlock()
			}
			return nil
		})
		var log lines
		for i := range objects {
			c.Create(t, example(fmt.Sprint("x-", i), "a"))
		}
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		other := example("other", "a")
		other.SetNamespace("elsewhere")
		c.CreateNamespace(t, "elsewhere")
		c.Create(t, other)
		settle()
		mu.Lock()
		if called["other"] != 1 {
			t.Error("the timer of another tenant waits")
		}
		mu.Unlock()
		time.Sleep(10 * time.Minute)
		mu.Lock()
		defer mu.Unlock()
		if most > fits || most < fits*3/4 {
			t.Errorf("%d calls at the same time, want about %d", most, fits)
		}
		if len(called) != objects+1 {
			t.Errorf("%d objects were called for, want %d", len(called), objects+1)
		}
		if !log.has("So many handlers are running") {
			t.Error("no line names the namespace")
		}
	})
}
