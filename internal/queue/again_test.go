package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// costed is an entry whose cost is known only after its first turn has looked at it.
type costed struct {
	name string
	cost int
}

func TestATurnThatCostsMoreThanKnownWaitsForMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		taken, running, most := 0, 0, 0
		var q *Queue[int, costed]
		q = New(Config[int, costed]{
			Cost: func(_ int, e costed) int { return e.cost }, Budget: &Budget{Size: 10, Patience: time.Hour},
			Weigh: func(costed) int { return 1 },
			Turn: func(_ context.Context, key int, e costed) {
				if e.cost == 0 && e.name == "large" {
					e.cost = 6
					q.Again(key, e)
					return
				}
				mu.Lock()
				taken, running = taken+1, running+e.cost
				most = max(most, running)
				mu.Unlock()
				time.Sleep(time.Second)
				mu.Lock()
				running -= e.cost
				mu.Unlock()
			},
		})
		for key := range 4 {
			q.Put(t.Context(), key, costed{name: "large"})
			q.Put(t.Context(), key, costed{name: "later"})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if actors, bytes, _ := q.Depth(); actors != 0 || bytes != 0 {
			t.Errorf("%d actors and %d bytes remain", actors, bytes)
		}
		q.Close()
		if taken != 8 || most != 6 {
			t.Errorf("%d turns, which took %d at a time", taken, most)
		}
	})
}

func TestAnEntryStaysAheadOfLaterOnesOfItsKey(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		var q *Queue[int, costed]
		q = New(Config[int, costed]{
			Cost: func(_ int, e costed) int { return e.cost }, Budget: &Budget{Size: 10, Patience: time.Hour},
			Turn: func(_ context.Context, key int, e costed) {
				if time.Sleep(time.Second); e.name == "first" && e.cost == 0 {
					e.cost = 6
					q.Again(key, e)
					return
				}
				order = append(order, e.name)
			},
		})
		for _, name := range []string{"first", "second", "third"} {
			q.Put(t.Context(), 1, costed{name: name})
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		q.Close()
		if !slices.Equal(order, []string{"first", "second", "third"}) {
			t.Errorf("got %v", order)
		}
		q.Again(1, costed{}) // after Close, it is dropped
	})
}
