package alarm

import (
	"context"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestKeysRingInOrderOfTheirTimes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, rung := time.Now(), []string{}
		clock := New(func(key string) { rung = append(rung, fmt.Sprint(key, "@", time.Since(start))) })
		clock.Set("late", start.Add(time.Hour))
		clock.Set("soon", start.Add(time.Second))
		clock.Set("never", start.Add(time.Minute))
		clock.Set("moved", start.Add(time.Millisecond))
		clock.Set("past", start.Add(-time.Hour))
		clock.Set("moved", start.Add(2*time.Hour))
		clock.Cancel("never")
		go clock.Run(t.Context())

		time.Sleep(3 * time.Hour)
		synctest.Wait()
		want := []string{"past@0s", "soon@1s", "late@1h0m0s", "moved@2h0m0s"}
		if diff := cmp.Diff(want, rung); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestAnEarlierTimeSetWhileWaitingIsInTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		start, rung := time.Now(), []string{}
		clock := New(func(key string) { rung = append(rung, fmt.Sprint(key, "@", time.Since(start))) })
		clock.Set("late", start.Add(time.Hour))
		go clock.Run(t.Context())
		synctest.Wait()
		clock.Set("soon", start.Add(time.Second))
		time.Sleep(time.Minute)
		synctest.Wait()
		if diff := cmp.Diff([]string{"soon@1s"}, rung); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if clock.Len() != 1 {
			t.Errorf("%d keys wait, want 1", clock.Len())
		}
	})
}

func TestRingMaySetTheKeyAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var clock *Clock[int]
		count := 0
		clock = New(func(key int) { count++; clock.Set(key, time.Now().Add(time.Second)) })
		clock.Set(1, time.Now())
		ctx, stop := context.WithTimeout(t.Context(), time.Minute+time.Millisecond)
		defer stop()
		clock.Run(ctx)
		if count != 61 {
			t.Errorf("rung %d times, want 61", count)
		}
	})
}

func TestWaitingKeysAreCountedWithTheAgeOfTheFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		clock := New(func(string) {})
		clock.Set("a", time.Now().Add(time.Hour))
		time.Sleep(time.Minute)
		clock.Set("b", time.Now().Add(time.Hour))
		clock.Set("a", time.Now().Add(2*time.Hour)) // it keeps waiting
		time.Sleep(time.Minute)
		if n, oldest := clock.Count(func(string) bool { return true }); n != 2 || oldest != 2*time.Minute {
			t.Errorf("got %d, %s", n, oldest)
		}
		if n, oldest := clock.Count(func(key string) bool { return key == "b" }); n != 1 || oldest != time.Minute {
			t.Errorf("got %d, %s", n, oldest)
		}
		if n, oldest := clock.Count(func(string) bool { return false }); n != 0 || oldest != 0 {
			t.Errorf("got %d, %s", n, oldest)
		}
	})
}
