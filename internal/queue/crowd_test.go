package queue

import (
	"context"
	"math/rand/v2"
	"strconv"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// One event can cause turns of all keys of a group.
func TestTurnsOfAGroupThatAreAsideAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		var began, most, others, crowded atomic.Int32
		crowd := &Crowd{Limit: 10, Reached: func(group string) {
			if group != "a" {
				t.Errorf("the group %q is crowded", group)
			}
			crowded.Add(1)
		}}
		var q *Queue[int, int]
		q = New(Config[int, int]{
			Active: 4, Crowd: crowd,
			Group: func(key, _ int) string { return map[bool]string{true: "a", false: "b"}[key < 100] },
			Turn: func(_ context.Context, key, _ int) {
				group := "a"
				if key >= 100 {
					group = "b"
				}
				q.Aside(group, 1, func() {
					if key >= 100 {
						others.Add(1)
						return
					}
					most.Store(max(most.Load(), began.Add(1)))
					q.Inside(group, 1, func() {}) // is aside again afterwards
					<-end
					began.Add(-1)
				})
			},
		})
		for key := range 50 {
			q.Put(t.Context(), key, 1)
		}
		synctest.Wait()
		if n := began.Load(); n < 10 || n > 10+4 {
			t.Errorf("%d turns are aside, want about 10", n)
		}
		for key := range 20 {
			q.Put(t.Context(), 100+key, 1)
		}
		synctest.Wait()
		if n := others.Load(); n != 20 {
			t.Errorf("%d turns of another group have ended, want 20", n)
		}
		close(end)
		synctest.Wait()
		q.Close()
		if most.Load() > 10+4 || began.Load() != 0 || crowded.Load() == 0 || len(crowd.used) != 0 {
			t.Errorf("at most %d were aside, and %d are; %d reports; %v", most.Load(), began.Load(), crowded.Load(), crowd.used)
		}
	})
}

// A tenant can have objects of all resources, and of any size.
func TestTheTurnsOfAGroupCountTogetherWithTheirMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crowd := &Crowd{Limit: 100}
		end := make(chan struct{})
		var began [3]atomic.Int32
		var queues [3]*Queue[int, int]
		for i, memory := range []int{10, 30, 30} {
			queues[i] = New(Config[int, int]{
				Active: 1, Crowd: crowd, Group: func(int, int) string { return "a" },
				Turn: func(context.Context, int, int) {
					queues[i].Aside("a", memory, func() { began[i].Add(1); <-end })
				},
			})
		}
		for key := range 4 {
			queues[0].Put(t.Context(), key, 1)
		}
		synctest.Wait()
		for key := range 20 {
			queues[1].Put(t.Context(), key, 1)
		}
		synctest.Wait()
		queues[2].Put(t.Context(), 1, 1)
		synctest.Wait()
		if a, b, c := began[0].Load(), began[1].Load(), began[2].Load(); a != 4 || b != 2 || c != 0 {
			t.Errorf("%d, %d and %d turns have begun, want 4, 2 and 0", a, b, c)
		}
		end <- struct{}{}
		synctest.Wait()
		close(end)
		synctest.Wait()
		if b, c := began[1].Load(), began[2].Load(); b != 20 || c != 1 {
			t.Errorf("%d and %d turns have begun in the end", b, c)
		}
		for _, q := range queues {
			q.Close()
		}
		if len(crowd.used) != 0 || len(crowd.waiting) != 0 {
			t.Errorf("left: %v and %d", crowd.used, len(crowd.waiting))
		}
	})
}

// Many tenants may have many running handlers, each of them less than a tenant may have.
func TestAllGroupsTogetherAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const groups, total, least = 20, 100, 3
		end := make(chan struct{})
		var began, ended atomic.Int32
		var blamed atomic.Value
		crowd := &Crowd{Limit: 40, Total: total, Least: least, Reached: func(group string) { blamed.Store(group) }}
		group := func(key int) string { return strconv.Itoa(key % groups) }
		var q *Queue[int, int]
		q = New(Config[int, int]{
			Active: 4, Crowd: crowd, Group: func(key, _ int) string { return group(key) },
			Turn: func(_ context.Context, key, _ int) {
				q.Aside(group(key), 1, func() { began.Add(1); <-end; ended.Add(1) })
			},
		})
		for n := range 40 { // two groups with less than their limit, and then all
			q.Put(t.Context(), n*groups, 1)
			q.Put(t.Context(), n*groups+1, 1)
			synctest.Wait()
		}
		for n := range 10 {
			for g := range groups {
				q.Put(t.Context(), (40+n)*groups+g, 1)
			}
		}
		synctest.Wait()
		if n := int(began.Load()); n < total || n > total+groups*least+2*4 {
			t.Errorf("%d turns are aside, want about %d", n, total)
		}
		for g := range groups {
			if used := crowd.used[strconv.Itoa(g)]; used < least {
				t.Errorf("group %d has %d turns, want at least %d", g, used, least)
			}
		}
		if blamed.Load() == nil {
			t.Error("no group is named")
		}
		close(end)
		synctest.Wait()
		if n := ended.Load(); n != 80+10*groups {
			t.Errorf("%d turns have ended, want all %d", n, 80+10*groups)
		}
		q.Close()
		if len(crowd.used)+len(crowd.waiting)+crowd.all != 0 {
			t.Errorf("left: %v, %d, %d", crowd.used, len(crowd.waiting), crowd.all)
		}
	})
}

// Turns end one by one. Those that wait must start, whichever queue and group ends first.
func TestGroupsThatWaitForAllStartInTheEnd(t *testing.T) {
	for seed := range uint64(30) {
		synctest.Test(t, func(t *testing.T) {
			random := rand.New(rand.NewPCG(seed, 0))
			crowd := &Crowd{Limit: 1 + random.IntN(20), Total: 1 + random.IntN(40), Least: random.IntN(4)}
			var ended atomic.Int32
			var queues [3]*Queue[int, int]
			group := func(key int) string { return strconv.Itoa(key%len(queues)*100 + key*key%7) }
			for i := range queues {
				queues[i] = New(Config[int, int]{
					Active: 1 + random.IntN(5), Crowd: crowd, Group: func(key, _ int) string { return group(key) },
					Turn: func(_ context.Context, key, _ int) {
						queues[i].Aside(group(key), 1+key%3, func() { time.Sleep(time.Duration(key%11+key%len(queues)*20) * time.Second) })
						ended.Add(1)
					},
				})
			}
			for key := range 300 {
				queues[key%len(queues)].Put(t.Context(), key, 1)
			}
			time.Sleep(5 * time.Hour)
			if n := ended.Load(); n != 300 {
				t.Errorf("seed %d: %d turns have ended, want 300", seed, n)
			}
			for _, q := range queues {
				q.Close()
			}
		})
	}
}
