package turnstile

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestEachGroupHasUpToLimitCalls(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		var mu sync.Mutex
		now, most := map[string]int{}, map[string]int{}
		var all sync.WaitGroup
		began := time.Now()
		for i := range 20 {
			name := []string{"a", "b"}[i%2]
			all.Go(func() {
				leave, err := g.Enter(t.Context(), name, 2)
				if err != nil {
					t.Error(err)
					return
				}
				defer leave()
				mu.Lock()
				now[name]++
				most[name] = max(most[name], now[name])
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				now[name]--
				mu.Unlock()
			})
		}
		all.Wait()
		if most["a"] != 2 || most["b"] != 2 || time.Since(began) != 5*time.Second {
			t.Errorf("at a time: %v; in all %v", most, time.Since(began))
		}
		if g.Groups() != 0 {
			t.Errorf("%d groups remain", g.Groups())
		}
	})
}

// Calls that count as several never wait for each other with a part of their slots.
func TestACallMayCountAsSeveral(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g := &Gate{}
		var all sync.WaitGroup
		began := time.Now()
		for i := range 12 {
			all.Go(func() {
				leave, err := g.EnterAs(t.Context(), "a", []int{2, 3, 9}[i%3], 4) // 9 count as 4
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Second)
				leave()
			})
		}
		all.Wait()
		if took := time.Since(began); took < 10*time.Second || took > 12*time.Second { // at best, two calls of 2 run at the same time
			t.Errorf("12 calls took %v", took)
		}
		leave, _ := g.EnterAs(t.Context(), "a", 2, 4)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if _, err := g.EnterAs(ctx, "a", 3, 4); err == nil {
			t.Error("5 of 4 calls run")
		}
		again, err := g.EnterAs(t.Context(), "a", 2, 4)
		if err != nil {
			t.Fatalf("a canceled wait has kept its part: %v", err)
		}
		again()
		leave()
		if g.Groups() != 0 {
			t.Errorf("%d groups remain", g.Groups())
		}
	})
}

func TestANilGateLimitsNothing(t *testing.T) {
	var g *Gate
	for range 3 {
		if _, err := g.Enter(t.Context(), "a", 1); err != nil {
			t.Error(err)
		}
	}
}

func TestAWaitEndsWithTheContext(t *testing.T) {
	g := &Gate{}
	leave, _ := g.Enter(t.Context(), "a", 1)
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(errStopped)
	if _, err := g.Enter(ctx, "a", 1); !errors.Is(err, errStopped) {
		t.Errorf("got %v", err)
	}
	leave()
	if g.Groups() != 0 {
		t.Errorf("%d groups remain", g.Groups())
	}
}

var errStopped = errors.New("stopped")
