package controller

import (
	"bytes"
	"fmt"
	"log/slog"
	"math"
	"reflect"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/footprint"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/process"
)

// The Go types of handlers count: lists of empty JSON objects may be small, and large as
// slices of structs.
func TestTheCostOfATurnIncludesGoTypes(t *testing.T) {
	type small struct {
		Items []struct{ A int } `json:"items"`
	}
	type large struct {
		Items []struct{ Filler [500]int } `json:"items"`
	}
	body := func(n int) *object.Body {
		b, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"u"},"items":[%s{}]}`, strings.Repeat("{},", n)))
		if err != nil {
			t.Fatal(err)
		}
		return b
	}
	of := func(types ...reflect.Type) *Controller {
		var handlers handler.Set
		for _, t := range types {
			handlers = append(handlers, &handler.Handler{Type: t})
		}
		return &Controller{types: typesOf(handlers)}
	}
	untyped, narrow, wide := reflect.Type(nil), reflect.TypeFor[*small](), reflect.TypeFor[*large]()
	for _, c := range []struct {
		types       []reflect.Type
		items       int
		least, most int
	}{
		{[]reflect.Type{untyped}, 1, 0, 0},
		{[]reflect.Type{wide}, 1, 0, 0},
		{[]reflect.Type{untyped}, 50, 0, 0},
		{[]reflect.Type{narrow}, 50, 0, 0},
		{[]reflect.Type{wide}, 50, 2 * 50 * 4000, 2 * 3 * 51 * 4100},
		{[]reflect.Type{narrow, wide, untyped, wide}, 50, 2 * 50 * 4000, 2 * 3 * 51 * 4100},
		{[]reflect.Type{wide, narrow}, 1000, 2 * 1000 * 4000, 2*3*1001*4100 + 4*1000*500},
	} {
		controller, object := of(c.types...), body(c.items)
		for range 2 { // the second time from a cache
			if got := controller.costOf(object); got < c.least || got > c.most {
				t.Errorf("%v with %d items: %d bytes, want %d to %d", c.types, c.items, got, c.least, c.most)
			}
		}
	}
	if n := len(of(wide, narrow, wide, untyped).types); n != 2 {
		t.Errorf("%d types", n)
	}
}

// Changes of handlers that could not be written are kept as JSON, and decoded in the next turn.
func TestTheCostOfATurnIncludesUnwrittenChanges(t *testing.T) {
	var c Controller
	small, err := object.Parse([]byte(`{"metadata":{"name":"a","uid":"u"}}`))
	if err != nil {
		t.Fatal(err)
	}
	event := entry{event: &process.Event{Body: small}}
	for _, step := range []struct{ burden, want int }{{0, 0}, {1 << 20, copies << 20}, {0, 0}} {
		c.noteCost("a", small, step.burden)
		for name, e := range map[string]entry{"an alarm": {alarm: true}, "an event": event} {
			if got := c.cost("a", e); got < step.want || got > 2*step.want {
				t.Errorf("with changes of %d bytes, a turn for %s costs %d bytes", step.burden, name, got)
			}
		}
	}
}

func TestValuesThatAreNoCostAreSmall(t *testing.T) {
	if modestTurn != typedCopies*footprint.Small {
		t.Errorf("%d copies of %d bytes are not a modest turn of %d", typedCopies, footprint.Small, modestTurn)
	}
}

func TestTheBudgetsFitTheMemoryLimit(t *testing.T) {
	const mib = 1 << 20
	var c Config
	c.LimitMemory(256 * mib)
	all := c.Budget.Whole
	if all.Size != 96*mib || all.Most != 72*mib || c.Budget.Rest != 24*mib {
		t.Errorf("all turns have %d, one namespace %d, and costly turns leave %d", all.Size, all.Most, c.Budget.Rest)
	}
	if c.Modest.Whole != all || c.Held.Whole != all || c.Declared.Whole != all || c.Modest.Counted || !c.Held.Counted || !c.Declared.Counted {
		t.Error("the budgets are not parts of the same whole")
	}
	if c.Waiting.CostlyLimit != 256*mib/10 || c.Waiting.SpareLimit != 256*mib/28 {
		t.Errorf("the backlogs have %d and %d", c.Waiting.CostlyLimit, c.Waiting.SpareLimit)
	}
	if c.Crowd.Limit != 32*mib || c.Crowd.Total != 64*mib || c.Crowd.Least != 2*mib {
		t.Errorf("the running handlers of a namespace have %d, those of all %d, and the first of each %d", c.Crowd.Limit, c.Crowd.Total, c.Crowd.Least)
	}
	if sum := c.Budget.Hard + c.Crowd.Total; c.Budget.Hard != 128*mib || sum > 192*mib {
		t.Errorf("turns of large objects and running handlers have %d of 256 MiB", sum)
	}
	c.LimitMemory(math.MaxInt64) // no limit
	parts := 2*c.Budget.Size + c.Modest.Size + c.Held.Size + c.Declared.Size
	if all := c.Budget.Whole; all.Most-c.Budget.Rest < parts || c.Waiting.CostlyLimit < 100*costlyBacklog {
		t.Errorf("without a limit, the whole is %d", all.Size)
	}
	c.LimitMemory(1)
	if all := c.Budget.Whole; all.Size != modestTurns || c.Crowd.Limit != leastCalls*callMemory || c.Waiting.CostlyLimit != costlyBacklog || c.Waiting.SpareLimit != packedBacklog {
		t.Errorf("with a tiny limit, the whole is %d", all.Size)
	}
}

func TestRunningHandlersCountWithTheirTurns(t *testing.T) {
	c := &Controller{}
	for size, want := range map[int][2]int{ // in KiB
		100:     {48, 48},
		10_000:  {100, 150},
		50_000:  {48, 48}, // modest turns have a budget
		900_000: {48, 48},
	} {
		b, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"name":"a","uid":"u"},"text":%q}`, strings.Repeat("x", size)))
		if err != nil {
			t.Fatal(err)
		}
		if got := c.callMemoryOf(b) >> 10; got < want[0] || got > want[1] {
			t.Errorf("an object of %d bytes: %d KiB, want %d to %d", size, got, want[0], want[1])
		}
	}
	c.processor = &process.Processor{Reconcile: &process.Reconcile{}}
	b, err := object.Parse([]byte(`{"metadata":{"name":"a","uid":"u"}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got := c.callMemoryOf(b); got != callMemory+declaringMemory {
		t.Errorf("with reconcile handlers: %d bytes", got)
	}
}

// Daemons hold their objects for long. Those of large objects wait for each other, but not
// for those of another namespace that has none.
func TestDaemonsOfLargeObjectsShareMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var log bytes.Buffer
		held := NewHeldBudget(0)
		c := &Controller{config: Config{Held: held}, processor: &process.Processor{Log: slog.New(slog.NewTextHandler(&log, nil))}}
		body := func(namespace string, n int) *object.Body {
			b, err := object.Parse(fmt.Appendf(nil, `{"metadata":{"name":"a","namespace":%q,"uid":"u"},"items":[%s{}]}`, namespace, strings.Repeat("{},", n)))
			if err != nil {
				t.Fatal(err)
			}
			return b
		}
		spec := &daemon.Spec{Handler: &handler.Handler{ID: "ping"}}
		stopping := make(chan struct{})
		wait := func(b *object.Body) (leave func()) { return c.room(b, spec)(t.Context(), stopping) }
		large := body("one", 50_000) // about 22 MB
		first := wait(large)
		second := wait(large)
		got := make(chan func(), 1)
		go func() { got <- wait(large) }()
		time.Sleep(time.Hour)
		synctest.Wait()
		if len(got) > 0 {
			t.Fatal("a third large object has room")
		}
		if !strings.Contains(log.String(), "The daemon waits") || !strings.Contains(log.String(), "ping") {
			t.Errorf("the log does not tell that the daemon waits: %s", &log)
		}
		if c.room(body("one", 10), spec) != nil {
			t.Error("the daemon of a small object has to wait")
		}
		wait(body("two", 50_000))()
		first()
		third := <-got
		third()
		third = wait(large)
		go func() { wait(large)() }()
		synctest.Wait()
		close(stopping) // the operator stops, or the object is deleted
		second()
		third()
	})
}

// Slow handlers must not block all other objects of the namespace: after some time, one more starts.
func TestDaemonsDoNotBlockTurnsForever(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c Config
		c.LimitMemory(64 << 20 / 10 * 9)
		// The daemons of 1,000 objects such as pods, with 46 KiB each.
		for range 1000 {
			c.Held.Acquire(46<<10, "ns", nil, nil)
		}
		for range 40 { // 48 MiB in all
			c.Held.Acquire(72<<10, "ns", nil, nil)
		}
		var started atomic.Int32
		done := make(chan struct{})
		for range 5 { // turns of objects such as pods, with handlers that take long
			go func() {
				leave := c.Modest.Acquire(184<<10, "ns", done, nil)
				started.Add(1)
				<-done
				leave()
			}()
			synctest.Wait()
		}
		time.Sleep(time.Hour)
		synctest.Wait()
		if n := started.Load(); n < 5 {
			t.Errorf("%d of 5 turns have started after an hour", n)
		}
		close(done)
	})
}
