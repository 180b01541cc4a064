package daemon

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/queue"
)

// crowded lets at most most timers of a namespace run at the same time.
func crowded(k *kit, most int) {
	crowd := &queue.Crowd{Limit: most}
	k.Admit = func(lane Lane, _ int, again func()) func() { return crowd.Enter(fmt.Sprint(lane), 1, k.Set, again) }
}

// census counts the calls that run, and those that were made.
type census struct {
	mu      sync.Mutex
	running map[string]int // by namespace
	most    map[string]int
	calls   map[string]int // by object
	order   []string
}

// call is a handler that takes a while.
func (c *census) call(took time.Duration) func(context.Context, *Call) error {
	c.running, c.most, c.calls = map[string]int{}, map[string]int{}, map[string]int{}
	return func(ctx context.Context, call *Call) error {
		id := call.Body.Identity
		c.mu.Lock()
		c.running[id.Namespace]++
		c.most[id.Namespace] = max(c.most[id.Namespace], c.running[id.Namespace])
		c.calls[id.UID]++
		c.order = append(c.order, id.UID)
		c.mu.Unlock()
		defer func() {
			c.mu.Lock()
			c.running[id.Namespace]--
			c.mu.Unlock()
		}()
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(took):
			return nil
		}
	}
}

func (c *census) made(uid string) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[uid]
}

// A tenant has so many objects that the calls of their timers would fill the memory.
func TestTimersOfOneNamespaceWaitInALine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c census
		k := newKit(t, timerOf(time.Hour, c.call(10*time.Second)))
		crowded(k, 3)
		const objects = 1000
		before := runtime.NumGoroutine()
		for i := range objects {
			k.see(fmt.Sprint("a/", i), sight{})
		}
		synctest.Wait()
		if n := runtime.NumGoroutine() - before; n > 3+few {
			t.Errorf("%d goroutines for timers that wait", n)
		}
		k.see("b/other", sight{})
		synctest.Wait()
		if c.made("b/other") != 1 {
			t.Error("the timer of another namespace waits, too")
		}
		time.Sleep(time.Hour - time.Second)
		for i := range objects {
			if n := c.made(fmt.Sprint("a/", i)); n != 1 {
				t.Fatalf("%d calls for the object %d", n, i)
			}
		}
		if c.most["a"] != 3 {
			t.Errorf("%d calls at the same time, want 3", c.most["a"])
		}
		for i := range objects { // three calls start at the same time, in any order
			if place := slices.Index(c.order, fmt.Sprint("a/", i)); place < i-4 || place > i+4 {
				t.Errorf("the object %d of the line was the one with the number %d", i, place)
			}
		}
		if len(k.Set.lines.waiting) > 0 {
			t.Error("there are empty lines")
		}
	})
}

func TestATimerThatIsAlwaysDueDoesNotKeepOthersFromTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c census
		call := c.call(2 * time.Second)
		k := newKit(t, timerOf(time.Second, func(ctx context.Context, timer *Call) error {
			timer.Next(0)
			return call(ctx, timer)
		}))
		crowded(k, 1)
		for i := range 5 {
			k.see(fmt.Sprint("a/", i), sight{})
		}
		time.Sleep(time.Minute)
		for i := range 5 {
			if n := c.made(fmt.Sprint("a/", i)); n < 5 || n > 7 {
				t.Errorf("%d calls for the object %d, of 30 in all", n, i)
			}
		}
	})
}

func TestATimerThatEndsLeavesTheLine(t *testing.T) {
	for name, end := range map[string]func(k *kit){
		"deleted":   func(k *kit) { k.see("a/1", sight{deleting: true}) },
		"forgotten": func(k *kit) { k.object("a/1").Forget(ErrDeleted) },
		"paused":    func(k *kit) { k.see("a/1", sight{paused: true}) },
		"the set is paused": func(k *kit) {
			k.Pause()
			k.Resume()
			k.see("a/0", sight{}) // takes its place again
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var c census
				k := newKit(t, timerOf(time.Hour, c.call(time.Minute)))
				crowded(k, 1)
				k.see("a/0", sight{})
				k.see("a/1", sight{})
				synctest.Wait()
				end(k)
				synctest.Wait()
				if k.Set.lines.first(Lane{Namespace: "a"}) != nil && name != "the set is paused" {
					t.Error("the timer still waits in the line")
				}
				time.Sleep(10 * time.Minute)
				if n := c.made("a/1"); n != 0 {
					t.Errorf("it was called %d times", n)
				}
				if len(k.Set.lines.waiting) > 0 {
					t.Error("the line is not empty in the end")
				}
			})
		})
	}
}

// Timers of large objects may wait for memory during their calls.
func TestSmallObjectsDoNotWaitForLargeOnes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c census
		k := newKit(t, timerOf(time.Hour, c.call(time.Minute)))
		crowded(k, 1)
		for i := range 10 {
			k.see(fmt.Sprint("a/large-", i), sight{spec: strings.Repeat("x", largeObject)})
		}
		k.see("a/small", sight{})
		synctest.Wait()
		if c.made("a/small") != 1 {
			t.Error("the timer of the small object waits")
		}
		time.Sleep(30 * time.Minute)
		if c.made("a/large-9") != 1 {
			t.Error("the last large object was not called for")
		}
	})
}

// Timers of several resources share the memory of a namespace.
func TestATimerThatIsAlwaysDueDoesNotStarveOtherResources(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var one, other census
		call := one.call(time.Second)
		first := newKit(t, timerOf(time.Second, func(ctx context.Context, timer *Call) error {
			timer.Next(0)
			return call(ctx, timer)
		}))
		second := newKit(t, timerOf(time.Second, other.call(time.Second)))
		crowd := &queue.Crowd{Limit: 1}
		for _, k := range []*kit{first, second} {
			k.Admit = func(lane Lane, _ int, again func()) func() { return crowd.Enter(lane.Namespace, 1, k.Set, again) }
			k.see("a/x", sight{})
			synctest.Wait()
		}
		time.Sleep(time.Minute)
		if n := other.made("a/x"); n < 10 {
			t.Errorf("the timer of the other resource was called %d times in a minute", n)
		}
	})
}

// When the operator exits, a result is written at once, even while a handler of the same namespace
// does not end.
func TestUnsentResultsDoNotWaitInTheLineAtTheExit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		k := newKit(t, timerOf(time.Minute, func(_ context.Context, call *Call) error {
			if call.Body.Name == "slow" {
				time.Sleep(20 * time.Second)
				return nil
			}
			call.Patch.Set("x", "status", "seen")
			return nil
		}))
		crowded(k, 1)
		k.failing(func() error { return errors.New("not now") })
		k.see("a/quick", sight{})
		synctest.Wait() // its result could not be written
		k.see("a/slow", sight{})
		time.Sleep(2 * time.Second) // the retry is due, and waits
		if k.Set.lines.first(Lane{Namespace: "a"}) == nil {
			t.Error("the retry does not wait")
		}
		k.failing(nil)
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		k.Exit(ctx)
		if sent := k.sent(); len(sent) != 1 {
			t.Errorf("%d results were written before the exit, want 1", len(sent))
		}
		time.Sleep(time.Minute)
	})
}

// Timers come, end, and are called at random.
func TestNoTimerIsForgottenInTheLine(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c census
		k := newKit(t, timerOf(30*time.Second, c.call(time.Second)))
		crowded(k, 2)
		for round := range 200 {
			name := fmt.Sprint([]string{"a/", "b/"}[round%2], round*7%20)
			switch round % 5 {
			case 0:
				k.see(name, sight{deleting: true})
			case 1:
				k.see(name, sight{paused: true})
			default:
				k.see(name, sight{})
			}
			time.Sleep(time.Duration(round%4) * 300 * time.Millisecond)
		}
		for i := range 20 {
			for _, ns := range []string{"a/", "b/"} {
				k.see(fmt.Sprint(ns, i), sight{})
			}
		}
		time.Sleep(time.Minute)
		before := map[string]int{}
		for i := range 20 {
			for _, ns := range []string{"a/", "b/"} {
				before[fmt.Sprint(ns, i)] = c.made(fmt.Sprint(ns, i))
			}
		}
		time.Sleep(2 * time.Minute)
		for uid, n := range before {
			if c.made(uid) == n {
				t.Errorf("%s was not called again", uid)
			}
		}
		if c.most["a"] > 2 || c.most["b"] > 2 {
			t.Errorf("calls at the same time: %v", c.most)
		}
	})
}
