package queue

import (
	"runtime"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// A tenant can make thousands of timers due at once.
func TestTheWorkOfAReleaseDoesNotDependOnTheCallersThatWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const callers = 1000
		b := &Budget{Size: 10, Most: 8, Patience: time.Hour, Whole: &Budget{Size: 20, Most: 15}}
		leave := b.Acquire(8, "a", nil, nil)
		var all sync.WaitGroup
		for range callers {
			all.Go(func() {
				defer b.Acquire(8, "a", nil, nil)()
				time.Sleep(time.Second)
			})
		}
		synctest.Wait()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		leave()
		all.Wait()
		runtime.ReadMemStats(&after)
		if made := after.Mallocs - before.Mallocs; made > 50*callers {
			t.Errorf("%d allocations for %d callers", made, callers)
		}
		b.checkEmpty(t)
		b.Whole.checkEmpty(t)
	})
}

func TestCallersGetRoomInOrderAndGroupsTakeTurns(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Size: 10, Patience: time.Hour}
		var got []string
		var all sync.WaitGroup
		leave := b.Acquire(10, "a", nil, nil)
		for _, name := range []string{"a1", "a2", "a3", "b1", "a4", "b2", "c1"} {
			all.Go(func() {
				defer b.Acquire(10, name[:1], nil, nil)()
				got = append(got, name)
			})
			synctest.Wait()
		}
		leave()
		all.Wait()
		if want := []string{"a1", "b1", "c1", "a2", "b2", "a3", "a4"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		b.checkEmpty(t)
	})
}

func TestACallerThatGivesUpDoesNotBlockThoseBehindIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := &Budget{Size: 10, Patience: time.Hour}
		leave := b.Acquire(5, "a", nil, nil)
		done, small := make(chan struct{}), make(chan struct{})
		go func() { b.Acquire(8, "a", done, nil)() }()
		synctest.Wait()
		go func() {
			defer close(small)
			b.Acquire(2, "a", nil, nil)()
		}()
		synctest.Wait()
		select {
		case <-small:
			t.Error("a later caller overtook an earlier one of its group")
		default:
		}
		close(done)
		<-small
		leave()
		b.checkEmpty(t)
	})
}

func TestQueuesGetRoomAlthoughManyCallersWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w, b := &workers{}, &Budget{Size: 10, Patience: time.Hour}
		q := costly(w, b)
		leave := b.Acquire(10, "", nil, nil)
		served := 0
		var all sync.WaitGroup
		for range 100 {
			all.Go(func() {
				defer b.Acquire(10, "", nil, nil)()
				served++
				time.Sleep(time.Second)
			})
		}
		synctest.Wait()
		q.Put(t.Context(), 1, 10)
		leave()
		time.Sleep(105500 * time.Millisecond)
		w.check(t, 1)
		if served == 100 {
			t.Error("the turn of the queue was the last")
		}
		w.finish(1)
		all.Wait()
		q.Close()
		b.checkEmpty(t)
	})
}
