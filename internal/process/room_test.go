package process

import (
	"context"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

func TestACallWaitsForMemoryOnlyOnce(t *testing.T) {
	const size = 8 << 20
	left, waits := size, []bool{}
	room := callRoom{take: func(_ context.Context, _ <-chan struct{}, bytes, _ int, wait bool) (func(), bool) {
		if bytes > left {
			return nil, false
		}
		left, waits = left-bytes, append(waits, wait)
		return func() { left += bytes }, true
	}}
	steps := []struct {
		bytes int
		ok    bool
		left  int
	}{
		{freeRoom, true, size},                             // is not limited
		{1, true, size - firstRoom},                        // waits
		{firstRoom - freeRoom - 1, true, size - firstRoom}, // is reserved already
		{1, true, size - 2*firstRoom},                      // doubles it
		{-1, true, size - 2*firstRoom},                     // is given back to the call
		{firstRoom, true, size - 2*firstRoom},              // takes what is left in the call
		{size, false, size - 2*firstRoom},                  // is too much
		{size - 3*firstRoom, true, firstRoom},              // takes so much more
		{2 * firstRoom, false, firstRoom},                  // is too much
		{firstRoom, true, 0},                               // takes the rest, because it cannot be doubled
		{-firstRoom, true, 0}, {firstRoom, true, 0},        // is in use again
	}
	for i, step := range steps {
		if err := room.reserve(step.bytes); (err == nil) != step.ok || left != step.left {
			t.Errorf("step %d: %v, and %d bytes are left, want %d", i, err, left, step.left)
		}
	}
	if want := []bool{true, false, false, false}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if room.leave(); left != size {
		t.Errorf("%d bytes are left at the end", left)
	}
}

func TestMemoryForObjectsThatACallReads(t *testing.T) {
	const size = 8 << 20
	left, waits := size, []bool{}
	room := callRoom{take: func(_ context.Context, _ <-chan struct{}, bytes, _ int, wait bool) (func(), bool) {
		if waits = append(waits, wait); bytes > left {
			return nil, false
		}
		left -= bytes
		return func() { left += bytes }, true
	}}
	steps := []struct {
		of    string
		bytes int
		wait  bool
		ok    bool
		left  int
	}{
		{"a", freeReads, false, true, size},                   // is free
		{"a", freeReads, true, true, size},                    // counts once
		{"b", size + 1, false, false, size},                   // is too much
		{"b", 1, true, true, size - firstReads},               // waits, and gets more
		{"c", firstReads - 1, false, true, size - firstReads}, // fits into that
		{"c", 1, false, true, size - firstReads},              // is smaller than before
		{"d", 4 << 20, true, true, size - firstReads - 4<<20}, // does not wait: it has some
		{"d", 5 << 20, true, true, size - firstReads - 5<<20}, // is larger: the difference
		{"e", size, true, false, size - firstReads - 5<<20},   // is too much
		{"f", size - firstReads - 5<<20, false, true, 0},      // takes the rest
		{"g", 1, true, false, 0},                              // is too much
		{"d", 1 << 20, false, true, 0},                        // is smaller than before
	}
	for i, step := range steps {
		if ok := room.hold(t.Context(), step.of, step.bytes, step.wait, false); ok != step.ok || left != step.left {
			t.Errorf("step %d: %v, and %d bytes are left, want %d", i, ok, left, step.left)
		}
	}
	if !waits[1] || slices.Contains(append(waits[:1:1], waits[2:]...), true) {
		t.Errorf("waits %v, want only the second one", waits)
	}
	if room.leave(); left != size {
		t.Errorf("%d bytes are left at the end", left)
	}
}

// Handlers keep what they read, so the calls of every family count it until they end. A timer
// does so with [handler.Request.Room].
func TestReadsOfHandlersCount(t *testing.T) {
	for family, register := range map[string]func(*parent, *handler.Handler){
		"event":     func(p *parent, h *handler.Handler) { p.Watchers = handler.Set{h} },
		"change":    func(p *parent, h *handler.Handler) { p.Handlers = handler.Set{h} },
		"reconcile": func(p *parent, h *handler.Handler) { p.Reconcile.Handlers[0].Call = h.Call },
	} {
		t.Run(family, func(t *testing.T) {
			p := newParent(t)
			taken, largest := 0, 0
			p.Room = func(_ context.Context, namespace string, bytes, _ int, _ bool) (func(), bool) {
				if namespace != "ns" {
					t.Errorf("the memory is for namespace %q", namespace)
				}
				taken += bytes
				largest = max(largest, taken)
				return func() { taken -= bytes }, true
			}
			calls := 0
			register(p, &handler.Handler{
				ID: "reader", Reasons: map[cause.Reason]bool{cause.Create: true},
				Call: func(ctx context.Context, r *handler.Request) error {
					calls++
					if r.Hold == nil || !r.Hold(ctx, "a", 1<<20, true, false) || !r.Hold(ctx, "b", 2<<20+freeReads, false, false) || taken != 3<<20 {
						t.Errorf("%d bytes are taken", taken)
					}
					return nil
				},
			})
			p.start(t, p.server.body().Raw())
			if calls != 1 || taken != 0 || largest != 3<<20 {
				t.Errorf("%d calls; %d bytes at most, %d at the end", calls, largest, taken)
			}
		})
	}
	p := newParent(t)
	if p.holding(p.server.body()) != nil {
		t.Error("without limits, there is one for timers")
	}
	taken := 0
	p.Room = func(_ context.Context, _ string, bytes, _ int, _ bool) (func(), bool) {
		taken += bytes
		return func() { taken -= bytes }, true
	}
	hold, leave := p.plainRequest(&Memory{}, p.server.body()).Room(t.Context())
	if !hold(t.Context(), "a", 1<<20+freeReads, true, false) || taken != 1<<20 {
		t.Errorf("%d bytes are taken", taken)
	}
	if leave(); taken != 0 {
		t.Errorf("%d bytes are taken after the call", taken)
	}
}

// A handler may leave goroutines behind that use its client. Nobody would give memory back that they
// take later.
func TestACallTakesNoMemoryAfterItsEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		taken := 0
		p := &Processor{Room: func(ctx context.Context, _ string, bytes, _ int, wait bool) (func(), bool) {
			if wait {
				<-ctx.Done() // there will be none
				return func() {}, true
			}
			if bytes > 2*firstReads {
				return nil, false
			}
			taken += bytes
			return func() { taken -= bytes }, true
		}}
		body, err := object.Parse([]byte(`{"metadata":{"name":"a","namespace":"ns"}}`))
		if err != nil {
			t.Fatal(err)
		}
		room := p.roomFor(t.Context(), body)
		if !room.hold(t.Context(), "a", 1+freeReads, false, false) || taken != firstReads {
			t.Fatalf("%d bytes are taken", taken)
		}
		soon, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if began := time.Now(); room.hold(soon, "b", 1<<20, true, true) || time.Since(began) != time.Second {
			t.Error("a wait does not end with its context")
		}
		waited := make(chan bool)
		go func() { waited <- room.hold(context.Background(), "c", 1<<20, true, true) }()
		synctest.Wait()
		for _, of := range []string{"d", "e"} { // others of the call
			if room.hold(soon, of, 1<<20, true, true) {
				t.Error("a second wait of a call does not end with its context")
			}
		}
		room.leave()
		<-waited
		if taken != 0 {
			t.Errorf("%d bytes are taken after the call", taken)
		}
		if !room.hold(t.Context(), "f", 1<<20, true, true) || room.reserve(1<<20) != nil || taken != 0 {
			t.Errorf("%d bytes are taken by what goes on after the call", taken)
		}
	})
}
