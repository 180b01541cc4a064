package queue

import (
	"context"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestAnEntryThatNeedsNoTurnIsHandledAtTheEndOfTheRunningOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var order []string
		q := New(Config[int, string]{
			Weigh: func(entry string) int { return len(entry) },
			Turn: func(_ context.Context, _ int, entry string) {
				order = append(order, "turn "+entry)
				time.Sleep(time.Second)
			},
			Follow: func(_ context.Context, _ int, entry string) bool {
				order = append(order, "follow "+entry)
				return entry == "echo"
			},
			Workers: 1,
		})
		q.Put(t.Context(), 1, "a")
		synctest.Wait()
		q.Put(t.Context(), 2, "b") // it waits for the turn of the first key
		q.Put(t.Context(), 1, "echo")
		q.Put(t.Context(), 1, "later")
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"turn a", "follow echo", "turn later", "turn b"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		order = nil
		q.Put(t.Context(), 1, "a")
		synctest.Wait()
		q.Put(t.Context(), 1, "change")
		time.Sleep(time.Minute)
		synctest.Wait()
		if want := []string{"turn a", "follow change", "turn change"}; !slices.Equal(order, want) {
			t.Errorf("got %q, want %q", order, want)
		}
		if actors, bytes, _ := q.Depth(); actors != 0 || bytes != 0 {
			t.Errorf("%d actors and %d bytes are left", actors, bytes)
		}
		q.Close()
	})
}

// part is an entry that may be shed.
type part struct{ weight, kept int }

func TestShedEntriesKeepBytesWhileThereIsRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		var taken []part
		release := make(chan struct{})
		q := New(Config[int, part]{
			Weigh: func(e part) int { return e.weight }, Keeps: func(e part) int { return e.kept }, Urgent: func(part) bool { return true },
			Shed: func(_ int, e part, roomy bool) part {
				if roomy {
					return part{kept: 1}
				}
				return part{}
			},
			Turn: func(_ context.Context, _ int, e part) {
				<-release
				mu.Lock()
				defer mu.Unlock()
				taken = append(taken, e)
			},
			Limit: 10, SpareLimit: 2, Workers: 1,
		})
		put := func(keys ...int) {
			for _, key := range keys {
				q.Put(t.Context(), key, part{weight: 10})
				synctest.Wait()
			}
		}
		put(0, 1, 2, 3, 4) // the first is running, the second fills the queue
		release <- struct{}{}
		release <- struct{}{}
		release <- struct{}{}
		synctest.Wait() // the first that was shed has ended, the other one is running
		put(5, 6, 7)    // there is room again
		close(release)
		synctest.Wait()
		want := []part{{weight: 10}, {weight: 10}, {kept: 1}, {kept: 1}, {}, {weight: 10}, {kept: 1}, {kept: 1}}
		if !slices.Equal(taken, want) {
			t.Errorf("got %v, want %v", taken, want)
		}
		if q.kept != 0 {
			t.Errorf("%d bytes are still kept", q.kept)
		}
		q.Close()
	})
}
