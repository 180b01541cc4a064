package call

import (
	"context"
	"fmt"
	"maps"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// hall has daemons that hold and await seats.
type hall struct {
	t     *testing.T
	seats *seats
	ends  map[string][]context.CancelFunc

	mu      sync.Mutex
	running map[string]int // by namespace
	stops   int            // of daemons whose seat was needed
}

func newHall(t *testing.T, n int) *hall {
	return &hall{t: t, seats: newSeats(n), running: map[string]int{}, ends: map[string][]context.CancelFunc{}}
}

// enter starts n daemons of a namespace. Those that must give their seat back do it after a
// second, and wait again.
func (h *hall) enter(namespace string, n int) {
	for range n {
		ctx, cancel := context.WithCancel(h.t.Context())
		h.ends[namespace] = append(h.ends[namespace], cancel)
		go func() {
			for ctx.Err() == nil {
				inside, leave, err := h.seats.take(ctx, namespace, time.Hour, func() {})
				if err != nil {
					return
				}
				h.count(namespace, 1, 0)
				<-inside.Done()
				if ctx.Err() == nil {
					h.count(namespace, 0, 1)
					time.Sleep(time.Second)
				}
				h.count(namespace, -1, 0)
				leave()
			}
		}()
		synctest.Wait()
	}
}

func (h *hall) count(namespace string, running, stops int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.stops += stops
	if h.running[namespace] += running; h.running[namespace] == 0 {
		delete(h.running, namespace)
	}
}

// now returns the running daemons by namespace, and how many were stopped for others.
func (h *hall) now() (running map[string]int, stops int) {
	synctest.Wait()
	h.mu.Lock()
	defer h.mu.Unlock()
	return maps.Clone(h.running), h.stops
}

// end ends the first n daemons of a namespace.
func (h *hall) end(namespace string, n int) {
	for _, cancel := range h.ends[namespace][:n] {
		cancel()
		synctest.Wait()
	}
	h.ends[namespace] = h.ends[namespace][n:]
}

func (h *hall) check(when string, want map[string]int) {
	h.t.Helper()
	if running, _ := h.now(); !maps.Equal(running, want) {
		h.t.Errorf("%s: %v run, want %v", when, running, want)
	}
}

func TestANamespaceCannotHaveAllDaemons(t *testing.T) {
	for size, most := range map[int]int{0: 1, 1: 1, 2: 1, 3: 2, 4: 3, 32: 24} {
		synctest.Test(t, func(t *testing.T) {
			h := newHall(t, size)
			h.enter("many", 100)
			h.check(fmt.Sprintf("%d seats", size), map[string]int{"many": most})
			h.enter("few", 1)
			if size > 1 {
				h.check(fmt.Sprintf("%d seats", size), map[string]int{"many": most, "few": 1})
			}
			h.end("many", 100)
			h.check("after the end of the many", map[string]int{"few": 1})
			h.end("few", 1)
			if s := h.seats; s.used != 0 || len(s.held) > 0 || len(s.waiting) > 0 {
				t.Errorf("%d seats: some are not given back: %+v", size, s)
			}
			if _, stops := h.now(); stops > 0 {
				t.Errorf("%d daemons were stopped", stops)
			}
		})
	}
}

// Daemons hold their seats as long as objects exist: two namespaces must not keep out a third.
func TestANamespaceGetsASeatOfTheOneWithTheMost(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 8)
		h.enter("a", 20)
		h.enter("b", 20)
		h.check("at first", map[string]int{"a": 6, "b": 2})
		h.enter("c", 1)
		time.Sleep(2 * time.Second)
		h.check("with a third one", map[string]int{"a": 5, "b": 2, "c": 1})
		h.enter("c", 20)
		time.Sleep(time.Minute)
		running, stops := h.now()
		for namespace, n := range running {
			if n < 2 || n > 3 {
				t.Errorf("%s has %d seats", namespace, n)
			}
		}
		time.Sleep(time.Hour)
		if _, later := h.now(); later != stops {
			t.Errorf("%d daemons were stopped after the shares were fair", later-stops)
		}
		want := map[string]int{"a": 1, "b": 1, "c": 1}
		for i := range 5 {
			h.enter(strconv.Itoa(i), 1)
			want[strconv.Itoa(i)] = 1
		}
		time.Sleep(10 * time.Minute)
		h.check("with as many namespaces as seats", want)
		for namespace := range h.ends {
			h.end(namespace, len(h.ends[namespace]))
		}
		time.Sleep(time.Minute) // the seats that are being given back
		if s := h.seats; s.used != 0 || len(s.held) > 0 || len(s.waiting) > 0 || s.leaving != nil {
			t.Errorf("some seats are not given back: %+v", s)
		}
	})
}

// A tenant could create and delete objects to stop the daemons of others again and again.
func TestDaemonsAreRarelyStoppedForOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := newHall(t, 4)
		h.enter("a", 3)
		h.enter("b", 1)
		for range 600 {
			h.enter("c", 1)
			time.Sleep(time.Second)
			h.end("c", 1)
		}
		if _, stops := h.now(); stops == 0 || stops > 61 {
			t.Errorf("%d daemons were stopped in 10 minutes", stops)
		}
		for namespace := range h.ends {
			h.end(namespace, len(h.ends[namespace]))
		}
		time.Sleep(time.Minute)
	})
}

func TestANoticeIsDueOnceAMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var n notice
		notices := 0
		for range 301 {
			if n.due() {
				notices++
			}
			time.Sleep(time.Second)
		}
		if notices != 6 {
			t.Errorf("%d notices in 5 minutes", notices)
		}
	})
}
