package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// workers counts the turns that run, and lets them end one by one.
type workers struct {
	mu      sync.Mutex
	running []int
	end     map[int]chan struct{}
}

func (w *workers) turn(_ context.Context, key, _ int) {
	w.mu.Lock()
	w.running = append(w.running, key)
	if w.end == nil {
		w.end = map[int]chan struct{}{}
	}
	w.end[key] = make(chan struct{})
	wait := w.end[key]
	w.mu.Unlock()
	<-wait
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(k int) bool { return k == key })
}

func (w *workers) check(t *testing.T, want ...int) {
	t.Helper()
	synctest.Wait()
	w.mu.Lock()
	defer w.mu.Unlock()
	got := slices.Sorted(slices.Values(w.running))
	if !slices.Equal(got, want) {
		t.Errorf("got the turns %v, want %v", got, want)
	}
}

func (w *workers) finish(key int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	close(w.end[key])
}

// costly makes a queue where each entry is the cost of its turn.
func costly(w *workers, b *Budget) *Queue[int, int] {
	return New(Config[int, int]{Turn: w.turn, Cost: func(_, entry int) int { return entry }, Weigh: func(entry int) int { return 1 + entry }, Limit: 3, CostlyLimit: 1000, Budget: b})
}

func TestCostlyTurnsWaitForTheBudgetOfAllQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := &workers{}, &Budget{Size: 10, Patience: time.Hour}
		q, other := costly(w, b), costly(w, b)
		q.Put(t.Context(), 1, 6)
		q.Put(t.Context(), 2, 4)
		w.check(t, 1, 2)
		other.Put(t.Context(), 3, 5)
		q.Put(t.Context(), 4, 1)
		w.check(t, 1, 2)
		w.finish(1)
		w.check(t, 2, 3, 4)
		for _, key := range []int{2, 3, 4} {
			w.finish(key)
		}
		q.Put(t.Context(), 5, 50) // more than there is: it runs alone
		q.Put(t.Context(), 6, 1)
		w.check(t, 5)
		w.finish(5)
		w.check(t, 6)
		w.finish(6)
		q.Close()
		other.Close()
		if b.used != 0 {
			t.Errorf("%d are still taken", b.used)
		}
	})
}

func TestOrdinaryTurnsOvertakeCostlyOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := costly(w, &Budget{Size: 10, Patience: time.Hour})
		for key := range 20 { // they weigh more than Limit
			q.Put(t.Context(), key, 10)
		}
		q.Put(t.Context(), 20, 0)
		q.Put(t.Context(), 21, 0)
		w.check(t, 0, 20, 21)
		for _, key := range []int{0, 20, 21} {
			w.finish(key)
		}
		w.check(t, 1)
		w.finish(1)
		w.check(t, 2)
		go q.Close()
		synctest.Wait()
		w.finish(2)
	})
}

func TestSlowCostlyTurnsLetOthersBeginInTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := costly(w, &Budget{Size: 10, Patience: time.Second})
		for key := range 4 {
			q.Put(t.Context(), key, 6)
		}
		time.Sleep(900 * time.Millisecond)
		w.check(t, 0)
		time.Sleep(200 * time.Millisecond)
		w.check(t, 0, 1)
		time.Sleep(500 * time.Millisecond)
		w.check(t, 0, 1)
		time.Sleep(500 * time.Millisecond)
		w.check(t, 0, 1, 2)
		time.Sleep(time.Hour)
		w.check(t, 0, 1, 2) // at most twice the size
		w.finish(0)
		time.Sleep(2 * time.Second)
		w.check(t, 1, 2, 3)
		for key := range 3 {
			w.finish(key + 1)
		}
		q.Close()
	})
}

// The cost is that of the entry which the turn gets, even if a smaller one waited
// before.
func TestAnEntryThatGrowsWhileItWaitsIsCostly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := New(Config[int, int]{Turn: w.turn, Cost: func(_, entry int) int { return entry }, Budget: &Budget{Size: 10, Patience: time.Hour}, Workers: 2,
			Add: func(_ []int, entry int) []int { return []int{entry} }})
		q.Put(t.Context(), 1, 10)
		q.Put(t.Context(), 2, 0)
		w.check(t, 1, 2)
		q.Put(t.Context(), 3, 0)
		q.Put(t.Context(), 3, 10)
		w.finish(2)
		w.check(t, 1)
		w.finish(1)
		w.check(t, 3)
		w.finish(3)
		q.Close()
	})
}

func TestRoomOutsideOfQueuesIsWaitedForUntilTheEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Size: 10, Patience: time.Hour}
		leave := b.Acquire(10, "", nil, nil)
		done := make(chan struct{})
		go func() {
			b.Acquire(10, "", done, nil)() // without room
			b.Acquire(10, "", nil, nil)()  // with it
			close(done)
		}()
		synctest.Wait()
		done <- struct{}{}
		synctest.Wait()
		leave()
		<-done
		if b.used != 0 || len(b.waiting) != 0 {
			t.Errorf("%d are still taken, %d wait", b.used, len(b.waiting))
		}
	})
}
