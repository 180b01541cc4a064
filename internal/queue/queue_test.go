package queue

import (
	"context"
	"maps"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

func TestEntriesOfOneKeyAreTakenInOrderAndOneAtATime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		taken, busy := map[string][]int{}, map[string]bool{}
		q := New(Config[string, int]{Turn: func(_ context.Context, key string, n int) {
			mu.Lock()
			if busy[key] {
				t.Errorf("two turns of %s at a time", key)
			}
			busy[key] = true
			mu.Unlock()
			time.Sleep(time.Second)
			mu.Lock()
			busy[key], taken[key] = false, append(taken[key], n)
			mu.Unlock()
		}})
		for n := range 5 {
			q.Put(t.Context(), "a", n)
			q.Put(t.Context(), "b", n)
		}
		synctest.Wait()
		if actors, _, _ := q.Depth(); actors != 2 {
			t.Errorf("%d actors, want 2", actors)
		}
		time.Sleep(time.Minute)
		if actors, _, _ := q.Depth(); actors != 0 {
			t.Errorf("%d actors of idle keys", actors)
		}
		for key, got := range taken {
			if !slices.Equal(got, []int{0, 1, 2, 3, 4}) {
				t.Errorf("%s: %v", key, got)
			}
		}
		q.Close()
	})
}

func TestPuttingBlocksWhileTooMuchWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var put atomic.Int32
		q := New(Config[int, int]{
			Turn:  func(context.Context, int, int) { <-release },
			Weigh: func(n int) int { return n },
			Limit: 10, Workers: 1,
		})
		go func() {
			for key := range 5 {
				q.Put(t.Context(), key, 5)
				put.Add(1)
				time.Sleep(time.Millisecond) // the first turn starts
			}
		}()
		time.Sleep(time.Second)
		if got := put.Load(); got != 3 { // one is being handled, two wait
			t.Errorf("%d entries were put, want 3", got)
		}
		q.Put(t.Context(), 9, 0) // weightless entries never wait
		close(release)
		time.Sleep(time.Second)
		if got := put.Load(); got != 5 {
			t.Errorf("%d entries were put, want all 5", got)
		}
		q.Close()
	})
}

// A turn may take very long: handlers are user code. What waits for it must not block the
// entries of other keys, and must not take more and more memory.
func TestEntriesThatWaitForTheTurnOfTheirOwnKeyDoNotBlockOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		taken := map[string][]int{}
		q := New(Config[string, int]{
			Turn: func(_ context.Context, key string, n int) {
				mu.Lock()
				taken[key] = append(taken[key], n)
				mu.Unlock()
				if key == "slow" {
					<-release
				}
			},
			Weigh: func(n int) int { return n },
			Merge: func(waiting []int, n int) []int { return append(waiting[:len(waiting)-1], n) },
			Limit: 10,
		})
		q.Put(t.Context(), "slow", 3)
		synctest.Wait()
		for n := range 5 {
			q.Put(t.Context(), "slow", 4+n)
		}
		if _, bytes, _ := q.Depth(); bytes != 4+5+8 {
			t.Errorf("%d bytes wait, want 17", bytes)
		}
		q.Put(t.Context(), "other", 9)
		synctest.Wait()
		mu.Lock()
		if !slices.Equal(taken["other"], []int{9}) {
			t.Errorf("the other key had the turns %v", taken["other"])
		}
		mu.Unlock()
		close(release)
		synctest.Wait()
		if got, want := taken["slow"], []int{3, 4, 5, 8}; !slices.Equal(got, want) {
			t.Errorf("got the turns %v, want %v", got, want)
		}
		if actors, bytes, _ := q.Depth(); actors != 0 || bytes != 0 {
			t.Errorf("%d actors and %d bytes are left", actors, bytes)
		}
		q.Close()
	})
}

// Costly turns may wait for the budget for long.
func TestEntriesOfCostlyTurnsAreShedInsteadOfBlocking(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var mu sync.Mutex
		taken := map[int]int{}
		q := New(Config[int, int]{
			Turn: func(_ context.Context, key int, n int) {
				mu.Lock()
				taken[key] = n
				mu.Unlock()
				if n != 1 {
					<-release
				}
			},
			Weigh: func(n int) int { return max(0, n) },
			Cost: func(_ int, n int) int {
				if n == 1 {
					return 0
				}
				return 5
			},
			Shed:  func(_ int, n int, _ bool) int { return -n },
			Limit: 10, CostlyLimit: 10, Budget: &Budget{Size: 5, Patience: time.Hour},
		})
		for key := range 5 {
			q.Put(t.Context(), key, 5)
			synctest.Wait()
		}
		q.Put(t.Context(), 9, 1)
		synctest.Wait()
		mu.Lock()
		if taken[9] != 1 {
			t.Error("an ordinary entry waits for costly ones")
		}
		mu.Unlock()
		if _, bytes, _ := q.Depth(); bytes != 10 {
			t.Errorf("%d bytes wait, want 10", bytes)
		}
		close(release)
		synctest.Wait()
		if want := map[int]int{0: 5, 1: 5, 2: 5, 3: -5, 4: -5, 9: 1}; !maps.Equal(taken, want) {
			t.Errorf("got %v, want %v", taken, want)
		}
		q.Close()
	})
}

func TestOfferAcceptsUpToTwiceTheLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var waited atomic.Bool
		q := New(Config[int, int]{
			Turn:  func(context.Context, int, int) { <-release },
			Weigh: func(n int) int { return n },
			Limit: 10, Workers: 1,
		})
		for key := range 3 { // one is being handled, two wait
			q.Put(t.Context(), key, 5)
			synctest.Wait()
		}
		go func() {
			q.Put(t.Context(), 3, 5)
			waited.Store(true)
		}()
		synctest.Wait()
		for key, want := range []bool{true, true, false} {
			if got := q.Offer(t.Context(), 10+key, 5); got != want {
				t.Errorf("offer #%d: taken %t, want %t", key, got, want)
			}
		}
		if !q.Offer(t.Context(), 20, 0) {
			t.Error("a weightless entry was refused")
		}
		if waited.Load() {
			t.Error("Put did not block")
		}
		close(release)
		synctest.Wait()
		if !waited.Load() || !q.Offer(t.Context(), 30, 5) {
			t.Error("Offer was refused although there is room again")
		}
		q.Close()
		if q.Offer(t.Context(), 40, 0) {
			t.Error("an entry was taken after Close")
		}
	})
}

func TestClosingWaitsForRunningTurnsAndDropsTheRest(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int32
		q := New(Config[string, int]{Turn: func(context.Context, string, int) {
			time.Sleep(time.Second)
			done.Add(1)
		}})
		for n := range 5 {
			q.Put(t.Context(), "a", n)
		}
		synctest.Wait()
		q.Close()
		q.Put(t.Context(), "a", 9)
		synctest.Wait()
		if got := done.Load(); got != 1 {
			t.Errorf("%d turns, want only the one that was running", got)
		}
	})
}

func TestWaitingEntriesMayBeReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		release := make(chan struct{})
		var taken []int
		q := New(Config[string, int]{
			Turn: func(_ context.Context, _ string, n int) { <-release; taken = append(taken, n) },
			Add:  func(_ []int, n int) []int { return []int{n} },
		})
		q.Put(t.Context(), "a", 1)
		synctest.Wait()
		q.Put(t.Context(), "a", 2)
		q.Put(t.Context(), "a", 3)
		close(release)
		synctest.Wait()
		if !slices.Equal(taken, []int{1, 3}) {
			t.Errorf("got %v", taken)
		}
		q.Close()
	})
}

func TestNoMoreTurnsRunThanThereAreWorkers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var running, most atomic.Int32
		q := New(Config[int, int]{Workers: 3, Turn: func(context.Context, int, int) {
			if n := running.Add(1); n > most.Load() {
				most.Store(n)
			}
			time.Sleep(time.Second)
			running.Add(-1)
		}})
		started := time.Now()
		for key := range 12 {
			q.Put(t.Context(), key, 0)
		}
		synctest.Wait()
		time.Sleep(time.Hour)
		q.Close()
		if most.Load() != 3 {
			t.Errorf("got %d turns at a time, want 3", most.Load())
		}
		if d := time.Since(started); d != time.Hour {
			t.Errorf("took %s", d)
		}
	})
}

func TestTurnsAsideDoNotOccupyActiveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most, aside, mostAside atomic.Int32
		note := func(n, most *atomic.Int32) {
			if v := n.Add(1); v > most.Load() {
				most.Store(v)
			}
		}
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: 3, Turn: func(context.Context, int, int) {
			note(&active, &most)
			time.Sleep(time.Millisecond)
			active.Add(-1)
			q.Aside("", 1, func() {
				note(&aside, &mostAside)
				time.Sleep(time.Hour)
				aside.Add(-1)
			})
			note(&active, &most)
			time.Sleep(time.Millisecond)
			active.Add(-1)
		}})
		started := time.Now()
		for key := range 100 {
			q.Put(t.Context(), key, 0)
		}
		synctest.Wait()
		time.Sleep(time.Hour + time.Minute)
		if actors, _, _ := q.Depth(); actors != 0 {
			t.Errorf("%d turns have not ended after %v", actors, time.Since(started))
		}
		q.Close()
		if most.Load() != 3 || mostAside.Load() != 100 {
			t.Errorf("%d turns were active at a time and %d aside, want 3 and 100", most.Load(), mostAside.Load())
		}
	})
}

func TestPartsInsideOccupyActiveSlots(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most, begun, mostBegun atomic.Int32
		note := func(n, most *atomic.Int32) {
			if v := n.Add(1); v > most.Load() {
				most.Store(v)
			}
		}
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: 3, Turn: func(context.Context, int, int) {
			note(&begun, &mostBegun)
			q.Aside("", 1, func() {
				q.Inside("", 1, func() {
					note(&active, &most)
					time.Sleep(time.Second)
					active.Add(-1)
				})
			})
			begun.Add(-1)
		}})
		for key := range 100 {
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Minute)
		if actors, _, _ := q.Depth(); actors != 0 {
			t.Errorf("%d turns have not ended", actors)
		}
		q.Close()
		if most.Load() != 3 || mostBegun.Load() > 9 {
			t.Errorf("%d parts ran at a time in %d concurrent turns, want 3 in at most 9", most.Load(), mostBegun.Load())
		}
	})
}

func TestStartedTurnsFinishFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var begun, most atomic.Int32
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: 4, Turn: func(context.Context, int, int) {
			if n := begun.Add(1); n > most.Load() {
				most.Store(n)
			}
			q.Aside("", 1, func() {}) // quick, as most handlers are
			time.Sleep(time.Second)
			begun.Add(-1)
		}})
		for key := range 1000 {
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Hour)
		q.Close()
		if most.Load() > 12 {
			t.Errorf("%d concurrent turns with 4 active ones", most.Load())
		}
	})
}

// A turn may send thousands of requests in its slot, and as many turns of its group may wait
// to become active again.
func TestSlowTurnsOfOneGroupLeaveSlotsToOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var active, most, others atomic.Int32
		release := make(chan struct{})
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: 3, Group: func(key, _ int) string { return strconv.Itoa(key / 100) }, Turn: func(_ context.Context, key, _ int) {
			if key >= 100 {
				q.Aside(strconv.Itoa(key/100), 1, func() { time.Sleep(time.Millisecond) })
				others.Add(1)
				return
			}
			q.Aside("0", 1, func() {})
			most.Store(max(most.Load(), active.Add(1)))
			<-release
			active.Add(-1)
		}})
		for key := range 10 {
			q.Put(t.Context(), key, 0)
		}
		synctest.Wait()
		q.Put(t.Context(), 100, 0)
		q.Put(t.Context(), 200, 0)
		q.Put(t.Context(), 201, 0)
		time.Sleep(time.Second)
		if most.Load() != 3 || others.Load() != 3 {
			t.Errorf("%d turns of the slow group have slots, want 3; %d turns of other groups have ended, want 3", most.Load(), others.Load())
		}
		close(release)
		q.Close()
		if q.active != 0 || len(q.actives) != 0 {
			t.Errorf("%d slots are still taken: %v", q.active, q.actives)
		}
	})
}

// Two groups may have all slots of one group and those that are left for others.
func TestGroupsWithoutAnActiveTurnWaitForNoOtherGroup(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const slots = 6
		var most, now atomic.Int32
		release := make(chan struct{})
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: slots, Group: func(key, _ int) string { return strconv.Itoa(key / 100) }, Turn: func(_ context.Context, key, _ int) {
			q.Aside(strconv.Itoa(key/100), 1, func() { time.Sleep(time.Millisecond) })
			most.Store(max(most.Load(), now.Add(1)))
			<-release
			now.Add(-1)
		}})
		for key := range 200 { // of two groups
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Second)
		if n := now.Load(); n != slots+slots/3 {
			t.Errorf("two groups have %d slots, want %d", n, slots+slots/3)
		}
		for group := 2; group < 50; group++ {
			q.Put(t.Context(), group*100, 0)
			q.Put(t.Context(), group*100+1, 0)
		}
		time.Sleep(time.Second)
		third := 0
		q.mu.Lock()
		for group, n := range q.actives {
			if group != "0" && group != "1" {
				third += n
			}
		}
		q.mu.Unlock()
		if third != slots-slots/3 {
			t.Errorf("other groups have %d slots, want %d", third, slots-slots/3)
		}
		if n := most.Load(); n != 2*slots {
			t.Errorf("all groups have %d slots, want %d", n, 2*slots)
		}
		close(release)
		q.Close()
	})
}

func TestClosingWaitsForTurnsThatAreAside(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var done atomic.Int32
		var q *Queue[int, int]
		q = New(Config[int, int]{Active: 1, Turn: func(context.Context, int, int) {
			q.Aside("", 1, func() { time.Sleep(time.Second) })
			done.Add(1)
		}})
		for key := range 5 {
			q.Put(t.Context(), key, 0)
		}
		synctest.Wait()
		q.Close()
		if got := done.Load(); got != 5 {
			t.Errorf("%d turns have ended, want all 5 that were running", got)
		}
	})
}

func BenchmarkTurns(b *testing.B) {
	b.ReportAllocs()
	q := New(Config[int, int]{Active: 64, Weigh: func(int) int { return 100 }, Limit: 1 << 20, Turn: func(context.Context, int, int) {}})
	for n := range b.N {
		q.Put(b.Context(), n, n)
	}
	q.Close()
}

func TestTryRunsOnlyIfTheKeyIsIdle(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		q := New(Config[string, int]{Turn: func(_ context.Context, _ string, n int) { time.Sleep(time.Second); taken = append(taken, n) }})
		q.Put(t.Context(), "a", 1)
		if q.Try("a", func() bool { t.Error("two turns at a time"); return true }) {
			t.Error("Try ran although an entry was waiting")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		had := q.Try("a", func() bool {
			q.Put(t.Context(), "a", 2) // it waits
			q.Put(t.Context(), "a", 3)
			synctest.Wait()
			if !slices.Equal(taken, []int{1}) {
				t.Errorf("an entry was taken meanwhile: %v", taken)
			}
			return true
		})
		if !had {
			t.Error("Try did not run although the key was idle")
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		if !slices.Equal(taken, []int{1, 2, 3}) {
			t.Errorf("got %v", taken)
		}
		if actors, _, _ := q.Depth(); actors != 0 {
			t.Errorf("%d actors remain", actors)
		}
		q.Close()
		if q.Try("a", func() bool { return true }) {
			t.Error("Try ran after Close")
		}
	})
}

func TestUrgentEntriesGoFirstButNotAlways(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var taken []int
		q := New(Config[int, int]{Workers: 1, Urgent: func(n int) bool { return n < 100 }, Turn: func(_ context.Context, _ int, n int) {
			time.Sleep(time.Second)
			taken = append(taken, n)
		}})
		for _, n := range []int{1000, 1001, 1002, 1, 2, 3, 4, 5, 6, 7, 8, 9} {
			q.Put(t.Context(), n, n)
		}
		time.Sleep(time.Minute)
		synctest.Wait()
		q.Close()
		if want := []int{1000, 1, 2, 3, 4, 5, 6, 7, 1001, 8, 9, 1002}; !slices.Equal(taken, want) {
			t.Errorf("taken in the order %v, want %v", taken, want)
		}
	})
}

func TestAnEmptyQueueReleasesTheMemoryOfAStorm(t *testing.T) {
	release := make(chan struct{})
	q := New(Config[int, int]{Turn: func(context.Context, int, int) { <-release }, Workers: 10})
	before := heap()
	const keys = 30_000
	for n := range keys {
		q.Put(t.Context(), n, n)
	}
	close(release)
	for left := keys; left > 0; left, _, _ = q.Depth() {
		time.Sleep(time.Millisecond)
	}
	if more := heap() - before; more > 300_000 {
		t.Errorf("an empty queue takes %d bytes more than before", more)
	}
	q.Close()
}

// heap returns the bytes that are in use.
func heap() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}
