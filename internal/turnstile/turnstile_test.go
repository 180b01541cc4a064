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
