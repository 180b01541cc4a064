package queue

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
)

// One event can cause turns of all keys of a group.
func TestTurnsOfAGroupThatAreAsideAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		end := make(chan struct{})
		var began, most, others, crowded atomic.Int32
		var q *Queue[int, int]
		q = New(Config[int, int]{
			Active: 4, Away: 10, Crowded: func(group string) {
				if group != "a" {
					t.Errorf("the group %q is crowded", group)
				}
				crowded.Add(1)
			},
			Group: func(key, _ int) string { return map[bool]string{true: "a", false: "b"}[key < 100] },
			Turn: func(_ context.Context, key, _ int) {
				group := "a"
				if key >= 100 {
					group = "b"
				}
				q.Aside(group, func() {
					if key >= 100 {
						others.Add(1)
						return
					}
					most.Store(max(most.Load(), began.Add(1)))
					q.Inside(group, func() {}) // is aside again afterwards
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
		if most.Load() > 10+4 || began.Load() != 0 || crowded.Load() == 0 || len(q.away) != 0 {
			t.Errorf("at most %d were aside, and %d are; %d reports; %v", most.Load(), began.Load(), crowded.Load(), q.away)
		}
	})
}
