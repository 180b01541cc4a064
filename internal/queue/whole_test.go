package queue

import (
	"testing"
	"testing/synctest"
	"time"
)

// parts returns a whole of 20, of which a group can have 15, with a part for large turns that
// leaves 5, one for modest turns, and one that only counts.
func parts() (whole, large, modest, counted *Budget) {
	whole = &Budget{Size: 20, Most: 15}
	return whole, &Budget{Size: 16, Patience: time.Second, Whole: whole, Rest: 5},
		&Budget{Size: 12, Most: 12, Patience: time.Second, Whole: whole},
		&Budget{Size: 8, Most: 8, Patience: time.Hour, Whole: whole, Counted: true}
}

func (b *Budget) checkEmpty(t *testing.T) {
	t.Helper()
	if b.used != 0 || len(b.shares) != 0 || len(b.waiting) != 0 {
		t.Errorf("%d are still taken, by %v; %d wait", b.used, b.shares, len(b.waiting))
	}
}

func TestTheWholeLimitsTheSumOfItsParts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		whole, large, modest, _ := parts()
		q, other := modestly(w, large, modest), modestly(w, large, modest)
		for key := range 3 {
			q.Put(t.Context(), 100+key, 4)
		}
		w.check(t, 100, 101, 102) // 12
		other.Put(t.Context(), 110, 10)
		w.check(t, 100, 101, 102, 110) // 22: the first large one of the group
		other.Put(t.Context(), 111, 10)
		time.Sleep(time.Hour)
		w.check(t, 100, 101, 102, 110) // patience does not exceed the whole
		q.Put(t.Context(), 200, 4)
		q.Put(t.Context(), 201, 4)
		w.check(t, 100, 101, 102, 110, 200) // another group has one
		w.finish(110)
		w.check(t, 100, 101, 102, 111, 200)
		w.finish(100)
		w.finish(101)
		w.check(t, 102, 111, 200)
		w.finish(111)
		w.check(t, 102, 200, 201) // woken by the end of a turn of the other part
		for _, key := range []int{102, 200, 201} {
			w.finish(key)
		}
		q.Close()
		other.Close()
		whole.checkEmpty(t)
		large.checkEmpty(t)
		modest.checkEmpty(t)
	})
}

// Each of many groups may have slow large turns. Together they must not fill the memory.
func TestFirstTurnsOfManyGroupsHaveALimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		whole, large, modest, _ := parts()
		large.Size, large.Hard = 100, 26
		q := modestly(w, large, modest)
		for _, key := range []int{100, 200, 300} {
			q.Put(t.Context(), key, 10)
		}
		time.Sleep(time.Hour)
		w.check(t, 100, 200) // with 300 it would be 30
		q.Put(t.Context(), 301, 3)
		w.check(t, 100, 200, 301) // modest turns do not wait
		w.finish(200)
		w.check(t, 100, 300, 301)
		for _, key := range []int{100, 300, 301} {
			w.finish(key)
		}
		q.Put(t.Context(), 400, 40)
		w.check(t, 400) // nothing else would make room for it
		w.finish(400)
		q.Close()
		whole.checkEmpty(t)
	})
}

// Otherwise modest turns would wait for slow large ones.
func TestAPartLeavesRoomOfTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		_, large, modest, _ := parts()
		q := modestly(w, large, modest)
		q.Put(t.Context(), 100, 10)
		q.Put(t.Context(), 101, 10)
		q.Put(t.Context(), 102, 3)
		q.Put(t.Context(), 103, 2)
		q.Put(t.Context(), 104, 2)
		time.Sleep(time.Hour)
		w.check(t, 100, 102, 103)
		w.finish(100)
		w.check(t, 101, 102, 103)
		w.finish(103)
		w.check(t, 101, 102, 104)
		for _, key := range []int{101, 102, 104} {
			w.finish(key)
		}
		q.Close()
	})
}

// A turn that has memory may need more. If it waited for the whole, turns could wait for each
// other forever.
func TestRoomInsideOfTurnsNeverWaitsForTheWhole(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		whole, large, modest, counted := parts()
		leaves := []func(){large.Acquire(20, "a", nil, nil), modest.Acquire(6, "a", nil, nil)}
		for range 2 {
			leaves = append(leaves, counted.Acquire(2, "a", nil, nil))
			leave, ok := counted.Try(2, 0, "a")
			if !ok {
				t.Fatal("there is no room inside of a turn")
			}
			leaves = append(leaves, leave)
		}
		if _, ok := counted.Try(2, 0, "a"); ok {
			t.Error("the part has no limit")
		}
		if whole.used != 34 {
			t.Errorf("%d of the whole are taken", whole.used)
		}
		done := make(chan struct{})
		go func() {
			modest.Acquire(6, "a", done, nil)() // without room
			modest.Acquire(6, "a", nil, nil)()
			close(done)
		}()
		synctest.Wait()
		done <- struct{}{}
		synctest.Wait()
		for _, leave := range leaves {
			leave()
		}
		<-done
		for _, b := range []*Budget{whole, large, modest, counted} {
			b.checkEmpty(t)
		}
	})
}

func TestABacklogLimitsTheCostlyEntriesOfAllQueues(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b, budget := &workers{}, &Backlog{CostlyLimit: 20, SpareLimit: 3}, &Budget{Size: 5, Patience: time.Hour}
		shed := map[int]bool{}
		of := func() *Queue[int, int] {
			return New(Config[int, int]{Turn: w.turn, Cost: func(_, entry int) int { return max(entry, 1) }, Budget: budget, CostlyLimit: 1000, SpareLimit: 1000, Backlog: b,
				Weigh: func(entry int) int { return max(0, entry) }, Keeps: func(entry int) int { return max(0, -entry) },
				Shed: func(key, _ int, roomy bool) int {
					shed[key] = roomy
					if roomy {
						return -2
					}
					return 0
				}})
		}
		q, other := of(), of()
		q.Put(t.Context(), 1, 5)
		w.check(t, 1)
		q.Put(t.Context(), 2, 10)
		q.Put(t.Context(), 3, 10)
		if len(shed) != 0 {
			t.Errorf("shed too early: %v", shed)
		}
		other.Put(t.Context(), 4, 10)
		other.Put(t.Context(), 5, 10)
		q.Put(t.Context(), 6, 10)
		if len(shed) != 3 || !shed[4] || !shed[5] || shed[6] {
			t.Errorf("shed with room: %v", shed)
		}
		go q.Close()
		synctest.Wait()
		w.finish(1)
		synctest.Wait()
		w.finish(4)
		synctest.Wait()
		w.finish(5)
		other.Close()
		if b.costly.Load() != 0 || b.kept.Load() != 0 {
			t.Errorf("%d and %d bytes are still counted", b.costly.Load(), b.kept.Load())
		}
	})
}
