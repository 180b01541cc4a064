package engine_test

import (
	"context"
	"slices"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// processorTime returns the CPU time used by this process. Unlike real time, other
// processes do not affect it, and virtual time does not hide it.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var used syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &used); err != nil {
		t.Fatal(err)
	}
	return time.Duration(used.Utime.Nano() + used.Stime.Nano())
}

func TestWakesOfABusyObjectAreMerged(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("slow", func(ctx context.Context, _ *gopf.Change[*Example]) error {
			<-ctx.Done()
			return ctx.Err()
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		cost := func(wakes int) time.Duration {
			least := time.Duration(1<<63 - 1)
			for range 3 {
				begun := processorTime(t)
				for range wakes {
					x.Wake("default", "x", "slow", "slow/sub", "some-handler")
				}
				least = min(least, processorTime(t)-begun)
			}
			return max(least, 5*time.Millisecond) // less cannot be measured reliably
		}
		few, many := cost(2_000), cost(20_000)
		for range 5 { // other load on the machine disturbs the measurement
			if many > 12*few {
				few, many = max(few, cost(2_000)), min(many, cost(20_000))
			}
		}
		if many > 12*few {
			t.Errorf("20000 wakes cost %v, want at most 12 times the %v of 2000", many, few)
		}
	})
}

func TestWakingASubHandlerCallsIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			ch.Sub("sub", diary.failing("sub", 1, time.Hour))
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		x.Wake("default", "x", "unknown")
		settle()
		x.Wake("default", "x", "parent/sub")
		settle()
		synctest.Wait()
		if got, want := diary.all(), []string{"sub create a #0", "sub create a #1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}
