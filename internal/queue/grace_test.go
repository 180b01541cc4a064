package queue

import (
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// Slow turns of one group can take the whole budget.
func TestTheFirstTurnsOfOtherGroupsDoNotWaitForSlowTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Size: 10, Patience: 10 * time.Second, Grace: 2 * time.Second}
		b.Acquire(1, "slow", nil, nil)() // the last end
		var turns sync.WaitGroup
		for range 3 {
			turns.Go(func() {
				defer b.Acquire(10, "slow", nil, nil)()
				time.Sleep(time.Hour)
			})
		}
		synctest.Wait()
		began, running, most := time.Now(), 0, 0
		var mu sync.Mutex
		for i := range 10 {
			turns.Go(func() {
				leave := b.Acquire(5, fmt.Sprint("quick", i), nil, nil)
				if wait := time.Since(began); wait < 2*time.Second || wait > 4*time.Second {
					t.Errorf("a turn of another group started after %v", wait)
				}
				mu.Lock()
				running++
				most = max(most, running)
				mu.Unlock()
				time.Sleep(100 * time.Millisecond)
				mu.Lock()
				running--
				mu.Unlock()
				leave()
			})
		}
		time.Sleep(5 * time.Second)
		mu.Lock()
		if most != 1 {
			t.Errorf("%d turns of other groups ran at the same time", most)
		}
		mu.Unlock()
		turns.Wait()
		b.checkEmpty(t)
		if b.grace {
			t.Error("a group has grace in the end")
		}
	})
}

// Turns of other groups that end because of the grace must not delay the extra turns.
func TestGraceDoesNotEndThePatience(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Size: 10, Patience: 10 * time.Second, Grace: 2 * time.Second}
		b.Acquire(1, "slow", nil, nil)()
		end := make(chan struct{})
		var turns sync.WaitGroup
		began := time.Now()
		started := make(chan time.Duration, 2)
		for range 2 {
			turns.Go(func() {
				defer b.Acquire(10, "slow", nil, nil)()
				started <- time.Since(began)
				<-end
			})
		}
		turns.Go(func() {
			for range 20 {
				b.Acquire(5, "quick", nil, nil)()
				time.Sleep(time.Second)
			}
		})
		<-started
		if wait := <-started; wait != 10*time.Second {
			t.Errorf("the extra turn started after %v", wait)
		}
		close(end)
		turns.Wait()
		b.checkEmpty(t)
	})
}
