package daemon

import (
	"context"
	"fmt"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/alarm"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/patch"
)

// BenchmarkMemoryOfWaitingTimers measures the memory per object of 100,000 objects with
// a waiting timer, without the bytes of the objects.
func BenchmarkMemoryOfWaitingTimers(b *testing.B) {
	spec := timerOf(time.Hour, func(_ context.Context, c *Call) error { c.Body.Map(); return nil })
	measure(b, spec, 100_000)
}

// BenchmarkMemoryOfIdleDaemons measures the memory per object of 10,000 idle daemons,
// without the bytes of the objects and their decoded values.
func BenchmarkMemoryOfIdleDaemons(b *testing.B) {
	spec := daemonOf(func(ctx context.Context, c *Call) error {
		Apart(func() {
			if err := c.Body.Decode(&map[string]any{}); err != nil {
				panic(err)
			}
		})
		return obedient(ctx, c)
	})
	measure(b, spec, 10_000)
}

func measure(b *testing.B, spec *Spec, objects int) {
	for range b.N {
		s, end := benchSet(spec)
		kept := make([]*Object, objects)
		heap, stacks, goroutines := memory()
		size := 0
		for i := range kept {
			body := benchBody(i)
			size += body.Size()
			kept[i], _ = s.Sight(nil, Sighting{Request: request(body), Changed: true, Again: requests(i)})
		}
		for !settled(s, spec, objects) {
			time.Sleep(time.Millisecond)
		}
		heapNow, stacksNow, goroutinesNow := memory()
		n := float64(objects)
		b.ReportMetric((heapNow-heap-float64(size)+stacksNow-stacks)/n, "B/object")
		b.ReportMetric((stacksNow-stacks)/n, "B-stack/object")
		b.ReportMetric(float64(goroutinesNow-goroutines)/n, "goroutines/object")
		runtime.KeepAlive(kept)
		end()
	}
}

func settled(s *Set, spec *Spec, objects int) bool {
	if spec.Timer {
		return s.Moving() == 0 && s.Clock.Len() == objects
	}
	return s.Moving() == objects
}

// memory returns the memory in use after garbage collection and shrinking of stacks.
func memory() (heap, stacks float64, goroutines int) {
	for range 5 {
		runtime.GC()
	}
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return float64(m.HeapAlloc), float64(m.StackInuse), runtime.NumGoroutine()
}

// BenchmarkTimer measures a call of a timer, from one clock entry to the next.
func BenchmarkTimer(b *testing.B) {
	calls := make(chan struct{})
	s, end := benchSet(timerOf(time.Nanosecond, func(context.Context, *Call) error { calls <- struct{}{}; return nil }))
	o, _ := s.Sight(nil, Sighting{Request: request(benchBody(0)), Again: requests(0)})
	b.ReportAllocs()
	for b.Loop() {
		<-calls
	}
	o.Forget(ErrDeleted)
	go func() {
		for range calls { // the remaining ones
		}
	}()
	end()
	close(calls)
}

// BenchmarkEvent measures an event that changes nothing for the timer of its object.
func BenchmarkEvent(b *testing.B) {
	s, end := benchSet(timerOf(time.Hour, func(context.Context, *Call) error { return nil }, idle(time.Hour)))
	body := benchBody(0)
	var o *Object
	b.ReportAllocs()
	for b.Loop() {
		o, _ = s.Sight(o, Sighting{Request: request(body), Changed: true, Again: requests(0)})
	}
	end()
}

func benchSet(spec *Spec) (s *Set, end func()) {
	clock := alarm.New((*Task).Ring)
	ctx, stop := context.WithCancel(context.Background())
	go clock.Run(ctx)
	s = NewSet(Config{
		Specs: []*Spec{spec}, Clock: clock, Wake: func(string) {},
		Write: func(_ context.Context, b *object.Body, _ *patch.Patch, _ bool) (*object.Body, error) { return b, nil },
	})
	return s, func() { s.Exit(ctx); stop() }
}

func benchBody(i int) *object.Body {
	body, err := object.Parse(fmt.Appendf(nil, `{"apiVersion":"kopf.dev/v1","kind":"KopfExample","metadata":{"name":"kopf-example-%d",
		"namespace":"default","uid":"6f1c2b1e-0000-4000-8000-%012d","resourceVersion":"%d","labels":{"app":"example","tier":"prod"}},
		"spec":{"size":"1Gi","items":[1,2,3],"text":%q},"status":{"phase":"Ready","conditions":[{"type":"Ready","status":"True"}]}}`,
		i, i, 1000+i, strings.Repeat("x", 1000)))
	if err != nil {
		panic(err)
	}
	return body
}

func request(body *object.Body) *handler.Request {
	log := slog.New(slog.NewJSONHandler(nowhere{}, nil)).With(slog.Group("object",
		slog.String("apiVersion", body.APIVersion), slog.String("kind", body.Kind),
		slog.String("name", body.Name), slog.String("namespace", body.Namespace), slog.String("uid", body.UID)))
	return &handler.Request{Body: body, Key: body.Key, Log: log}
}

// nowhere discards formatted log lines.
type nowhere struct{}

func (nowhere) Write(line []byte) (int, error) { return len(line), nil }

// requests returns what a user of the package must keep per object.
func requests(i int) func(*object.Body) *handler.Request {
	return func(b *object.Body) *handler.Request { _ = i; return request(b) }
}
