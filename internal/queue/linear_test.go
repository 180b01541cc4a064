package queue

import (
	"context"
	"testing"
	"testing/synctest"
)

// A tenant can change one object thousands of times while its handler runs.
func TestTheCostOfAnEntryDoesNotDependOnThoseThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const entries = 2000
		calls, turns := 0, 0
		open := make(chan struct{})
		q := New(Config[string, int]{
			Add:    func(waiting []int, n int) []int { calls++; return append(waiting, n) },
			Weigh:  func(int) int { calls++; return 1 },
			Cost:   func(string, int) int { calls++; return 0 },
			Follow: func(context.Context, string, int) bool { calls++; return false },
			Turn: func(_ context.Context, _ string, n int) {
				if <-open; n != turns {
					t.Errorf("turn %d has entry %d", turns, n)
				}
				turns++
			},
		})
		for n := range entries {
			q.Put(t.Context(), "a", n)
		}
		if _, bytes, _ := q.Depth(); bytes < entries-1 {
			t.Errorf("the waiting entries have %d bytes", bytes)
		}
		close(open)
		synctest.Wait()
		if actors, bytes, _ := q.Depth(); actors != 0 || bytes != 0 || turns != entries {
			t.Errorf("%d turns; %d actors and %d bytes remain", turns, actors, bytes)
		}
		q.Close()
		if calls > 20*entries {
			t.Errorf("%d calls for %d entries", calls, entries)
		}
	})
}

func TestAnEntryThatIsFollowedStaysInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var turns, followed []int
		open := make(chan struct{})
		q := New(Config[string, int]{
			Weigh:  func(n int) int { return n },
			Follow: func(_ context.Context, _ string, n int) bool { followed = append(followed, n); return n%2 == 0 },
			Turn:   func(_ context.Context, _ string, n int) { <-open; turns = append(turns, n) },
		})
		for n := 1; n <= 6; n++ {
			q.Put(t.Context(), "a", n)
			synctest.Wait()
		}
		close(open)
		synctest.Wait()
		if actors, bytes, _ := q.Depth(); actors != 0 || bytes != 0 {
			t.Errorf("%d actors and %d bytes remain", actors, bytes)
		}
		q.Close()
		all := map[int]int{}
		for _, n := range turns {
			all[n]++
		}
		for _, n := range followed {
			if n%2 == 0 {
				all[n]++
			}
		}
		for n := 1; n <= 6; n++ {
			if all[n] != 1 {
				t.Errorf("entry %d was handled %d times; turns %v, followed %v", n, all[n], turns, followed)
			}
		}
	})
}
