package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// After a start, the items of a list are put one after the other. The turns of one group may
// take very long.
func TestEntriesThatAreNotUrgentWaitOnlyForAWhile(t *testing.T) {
	type key struct {
		group string
		n     int
	}
	for name, test := range map[string]struct {
		turn        time.Duration // of the first group
		patience    time.Duration
		least, most time.Duration // until the other group is handled
		shed        bool
	}{
		"slow turns":                   {time.Hour, 2 * time.Second, 2 * time.Second, 3 * time.Second, true},
		"slow turns, without patience": {time.Hour, 0, time.Hour, 3 * time.Hour, false},
		"quick turns":                  {10 * time.Millisecond, 2 * time.Second, 0, time.Second, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				const bare = -1
				var shed atomic.Int32
				began, handled := time.Now(), make(chan time.Duration, 1)
				var q *Queue[key, int]
				q = New(Config[key, int]{
					Active: 64, Limit: 100, Patience: test.patience, Crowd: &Crowd{Limit: 10},
					Weigh:  func(entry int) int { return max(0, entry) },
					Shed:   func(key, int, bool) int { shed.Add(1); return bare },
					Urgent: func(int) bool { return false },
					Group:  func(k key, _ int) string { return k.group },
					Turn: func(_ context.Context, k key, _ int) {
						if k.group == "others" {
							handled <- time.Since(began)
							return
						}
						q.Aside(k.group, 1, func() { time.Sleep(test.turn) })
					},
				})
				for n := range 300 {
					q.Put(t.Context(), key{"slow", n}, 1)
				}
				q.Put(t.Context(), key{"others", 0}, 1)
				if wait := <-handled; wait < test.least || wait > test.most {
					t.Errorf("another group was handled after %v, want %v to %v", wait, test.least, test.most)
				}
				if got := shed.Load() > 0; got != test.shed {
					t.Errorf("%d entries were shed", shed.Load())
				}
				q.Close()
			})
		})
	}
}

// The slow turns of a few groups, each with half of the queue, leave no room for others.
func TestSeveralGroupsThatFillTheQueueDoNotStopOthers(t *testing.T) {
	type key struct {
		group string
		n     int
	}
	for name, urgent := range map[string]bool{"urgent": true, "not urgent": false} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				began, handled := time.Now(), make(chan time.Duration, 1)
				var q *Queue[key, int]
				q = New(Config[key, int]{
					Active: 64, Limit: 100, Patience: time.Second, Crowd: &Crowd{Limit: 10},
					Weigh:  func(entry int) int { return max(0, entry) },
					Shed:   func(key, int, bool) int { return -1 },
					Urgent: func(int) bool { return urgent },
					Group:  func(k key, _ int) string { return k.group },
					Turn: func(_ context.Context, k key, _ int) {
						if k.group == "others" {
							handled <- time.Since(began)
							return
						}
						q.Aside(k.group, 1, func() { time.Sleep(time.Hour) })
					},
				})
				for n := range 200 {
					for _, group := range []string{"a", "b", "c", "d", "e"} {
						q.Put(t.Context(), key{group, n}, 1)
						synctest.Wait() // turns start until their group is crowded
					}
				}
				q.Put(t.Context(), key{"others", 0}, 1)
				if wait := <-handled; wait > 2*time.Second {
					t.Errorf("another group was handled after %v", wait)
				}
				q.Close()
			})
		})
	}
}
