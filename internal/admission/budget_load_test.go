package admission

import (
	"context"
	"math"
	"strconv"
	"testing"
	"testing/synctest"
	"time"
)

// A client that has more than its share waits for itself. The others are served, so the
// server is not blocked.
func TestABudgetIsBlockedOnlyIfEveryNewClientWouldWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newBudget(4)
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		calls := 0
		hold := func(peer string, d time.Duration) {
			calls++
			by := sender{peer, strconv.Itoa(calls)}
			go func() {
				weight, err := b.acquire(ctx, by, 1)
				if err != nil {
					return
				}
				time.Sleep(d)
				b.release(by, weight)
			}()
			synctest.Wait()
		}
		blocked := func(when string, waiting int, want time.Duration) {
			t.Helper()
			var load Load
			b.load(&load)
			got := -time.Second
			if !load.Blocked.IsZero() {
				got = time.Since(load.Blocked)
			}
			if got != want || load.Waiting != waiting {
				t.Errorf("%s: %d wait, and it is blocked for %v, want %d and %v", when, load.Waiting, got, waiting, want)
			}
		}
		const never = -time.Second
		blocked("idle", 0, never)
		for range 5 {
			hold("a", time.Minute)
		}
		time.Sleep(20 * time.Second)
		blocked("one client waits for its own share", 2, never)
		hold("b", 10*time.Second)
		hold("b", 10*time.Second)
		time.Sleep(5 * time.Second)
		blocked("another one waits", 3, 5*time.Second)
		time.Sleep(7 * time.Second)
		blocked("it was served two seconds ago", 2, never)
		hold("c", time.Second)
		time.Sleep(time.Second)
		blocked("a third one waits", 3, time.Second)
		cancel()
		time.Sleep(time.Hour)
		blocked("idle again", 0, never)
	})
}

func TestReviewsHaveAPartOfTheMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	for limit, want := range map[int64][2]int64{
		math.MaxInt64: {96 * mib, 48 * mib}, 1024 * mib: {96 * mib, 48 * mib}, 200 * mib: {50 * mib, 40 * mib},
	} {
		o := DefaultReviewerOptions()
		o.LimitMemory(limit)
		if o.Memory != want[0] || o.Bytes != want[1] {
			t.Errorf("with %d: %d for decoded reviews and %d for bodies, want %v", limit, o.Memory, o.Bytes, want)
		}
	}
}
