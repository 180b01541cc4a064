package queue

import (
	"context"
	"slices"
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
		var order []string
		running, most := 0, 0
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
				order = append(order, e.name)
				if running++; e.cost > 0 {
					most = max(most, running)
				}
				time.Sleep(time.Second)
				running--
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
		first := slices.Index(order, "later")
		if len(order) != 8 || first < 1 {
			t.Errorf("got %v", order)
		}
		if most > 2 { // a large one, and the later entry of another key
			t.Errorf("%d turns ran beside a large one", most)
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
