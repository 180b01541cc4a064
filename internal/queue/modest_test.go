package queue

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// modestly makes a queue where each entry is the cost of its turn, and keys of the same
// hundred are a group.
func modestly(w *workers, large, modest *Budget) *Queue[int, int] {
	return New(Config[int, int]{Turn: w.turn, Cost: func(_, entry int) int { return entry }, Budget: large, Large: 10, Modest: modest,
		Group: func(key, _ int) string { return fmt.Sprint(key / 100) }})
}

func TestModestTurnsOfAGroupLeaveMemoryForOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := &workers{}, &Budget{Size: 8, Most: 6, Patience: time.Hour}
		q := modestly(w, &Budget{Size: 100, Patience: time.Hour}, b)
		for key := range 10 {
			q.Put(t.Context(), 100+key, 2)
		}
		w.check(t, 100, 101, 102)
		q.Put(t.Context(), 200, 2)
		q.Put(t.Context(), 300, 9) // more than the rest: a group that has nothing does not wait
		q.Put(t.Context(), 201, 2)
		q.Put(t.Context(), 1, 0)
		w.check(t, 1, 100, 101, 102, 200, 300)
		w.finish(300)
		w.check(t, 1, 100, 101, 102, 200)
		w.finish(100)
		w.check(t, 1, 101, 102, 103, 200)
		w.finish(101)
		w.check(t, 1, 102, 103, 200, 201) // the groups take turns
		go q.Close()
		synctest.Wait()
		for _, key := range []int{1, 102, 103, 200, 201} {
			w.finish(key)
		}
		synctest.Wait()
		if b.used != 0 || len(b.shares) != 0 {
			t.Errorf("%d are still taken: %v", b.used, b.shares)
		}
	})
}

func TestModestTurnsDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := modestly(w, &Budget{Size: 10, Patience: time.Hour}, &Budget{Size: 8, Most: 6, Patience: time.Hour})
		q.Put(t.Context(), 100, 10)
		q.Put(t.Context(), 101, 10)
		q.Put(t.Context(), 102, 3)
		w.check(t, 100, 102)
		w.finish(100)
		w.check(t, 101, 102)
		w.finish(101)
		w.finish(102)
		q.Close()
	})
}

func TestSlowCostlyTurnsOfOneGroupDoNotBlockOtherGroups(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := modestly(w, &Budget{Size: 20, Patience: time.Second}, nil)
		for key := range 10 {
			q.Put(t.Context(), 100+key, 20)
		}
		time.Sleep(time.Hour)
		w.check(t, 100, 101)
		q.Put(t.Context(), 200, 30)
		q.Put(t.Context(), 201, 30)
		time.Sleep(2 * time.Second)
		w.check(t, 100, 101, 200)
		w.finish(100)
		w.finish(101)
		time.Sleep(2 * time.Second)
		w.check(t, 102, 200) // used for less than twice the size
		go q.Close()
		synctest.Wait()
		w.finish(102)
		w.finish(200)
	})
}

// Small costly turns that come again and again must not take the room that a larger one
// of another group waits for.
func TestALargerTurnOfAnotherGroupGetsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := modestly(w, &Budget{Size: 30, Patience: time.Hour}, nil)
		for key := range 5 {
			q.Put(t.Context(), 100+key, 10)
		}
		q.Put(t.Context(), 200, 30)
		w.check(t, 100, 101, 102)
		w.finish(100)
		w.finish(101)
		w.check(t, 102)
		w.finish(102)
		w.check(t, 103) // the groups take turns
		w.finish(103)
		w.check(t, 200)
		w.finish(200)
		w.check(t, 104)
		w.finish(104)
		q.Close()
	})
}

// An entry may be replaced while it waits, by one of another size.
func TestModestTurnsThatChangeTheirSizeWaitForTheRightMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := &workers{}
		q := New(Config[int, int]{Turn: w.turn, Cost: func(_, entry int) int { return entry }, Budget: &Budget{Size: 20, Patience: time.Hour},
			Large: 10, Modest: &Budget{Size: 6, Most: 6, Patience: time.Hour}, Add: func(_ []int, entry int) []int { return []int{entry} }})
		q.Put(t.Context(), 1, 20)
		q.Put(t.Context(), 2, 6)
		q.Put(t.Context(), 3, 6)
		q.Put(t.Context(), 4, 6)
		w.check(t, 1, 2)
		q.Put(t.Context(), 3, 0)
		w.check(t, 1, 2, 3)
		q.Put(t.Context(), 4, 20)
		w.finish(2)
		w.check(t, 1, 3)
		w.finish(1)
		w.check(t, 3, 4)
		w.finish(3)
		w.finish(4)
		q.Close()
	})
}

// open admits all turns.
type open struct{}

func (open) open(*actor[int]) bool  { return true }
func (open) admit(*actor[int]) bool { return true }
func (open) idle(*actor[int]) bool  { return true }

func TestWaitingModestTurnsTakeTurnsWithTheOthers(t *testing.T) {
	turn := func(n need) *actor[int] { return &actor[int]{next: func() need { return n }} }
	var r ready[int]
	for range 4 {
		r.modest.push("a", turn(need{modest, 1, "a"}))
		r.push(turn(need{}), "a", false)
	}
	var got []size
	for range 4 {
		a, _ := r.pop(open{})
		got = append(got, a.next().size)
	}
	if !slices.Equal(got, []size{modest, small, modest, small}) {
		t.Errorf("got the sizes %v", got)
	}
}

func TestEntriesThatWaitForRunningTurnsAreShed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var got []int
		turn := make(chan struct{})
		q := New(Config[int, int]{Weigh: func(entry int) int { return entry }, Limit: 10, Shed: func(int, int, bool) int { return 0 },
			Turn: func(_ context.Context, _, entry int) {
				<-turn
				got = append(got, entry)
			}})
		q.Put(t.Context(), 1, 7)
		synctest.Wait()
		for range 4 {
			q.Put(t.Context(), 1, 7)
		}
		if _, bytes, _ := q.Depth(); bytes != 14 {
			t.Errorf("%d bytes wait", bytes)
		}
		close(turn)
		synctest.Wait()
		if fmt.Sprint(got) != "[7 7 7 0 0]" {
			t.Errorf("got the entries %v", got)
		}
		q.Close()
	})
}
