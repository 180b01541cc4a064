package queue

import (
	"context"
	"runtime"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// goroutine returns the number of the current goroutine, as in stack traces.
func goroutine() string {
	head := make([]byte, 32)
	return string(head[:runtime.Stack(head, false)])
}

func TestTurnsReuseGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		seen := map[string]bool{}
		const active, keys = 2, 100
		q := New(Config[int, int]{Active: active, Turn: func(context.Context, int, int) {
			mu.Lock()
			seen[goroutine()] = true
			mu.Unlock()
			time.Sleep(time.Second)
		}})
		for key := range keys {
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(seen) > keys/4 {
			t.Errorf("%d turns had %d goroutines", keys, len(seen))
		}
		q.Close()
	})
}

func TestAnIdleQueueHasNoGoroutine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config[int, int]{Turn: func(_ context.Context, key, _ int) { time.Sleep(time.Duration(key) * time.Second) }})
		for key := range 3 * maxSpare {
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Duration(2*maxSpare)*time.Second + time.Millisecond)
		synctest.Wait()
		q.mu.Lock()
		spare := len(q.spare)
		q.mu.Unlock()
		if spare != maxSpare {
			t.Errorf("%d spare goroutines while turns are running, want %d", spare, maxSpare)
		}
		time.Sleep(time.Hour)
		// Without Close: synctest fails if goroutines are left.
	})
}

func TestClosingEndsSpareGoroutines(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New(Config[int, int]{Turn: func(_ context.Context, key, _ int) { time.Sleep(time.Duration(key) * time.Minute) }})
		for key := range 3 {
			q.Put(t.Context(), key, 0)
		}
		time.Sleep(time.Second)
		q.Close()
	})
}
