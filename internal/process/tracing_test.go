package process

import (
	"bytes"
	"context"
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/kind"
)

// TestTracingAndMetricsThatAreOffAllocateNothing compares turns with those of the parts that
// observe them. The number varies by one in rare runs, because the race detector and the
// garbage collector drop pooled objects. So the smallest number of several runs counts.
func TestTracingAndMetricsThatAreOffAllocateNothing(t *testing.T) {
	least := func(setup func(*Processor)) float64 {
		n := math.Inf(1)
		for range 5 {
			n = min(n, testing.AllocsPerRun(50, newObjectBy(t, false, setup)))
		}
		return n
	}
	none := least(func(*Processor) {})
	off := least(func(p *Processor) { p.Config.Begin, p.Observe, p.Trail = nil, nil, nil })
	counted := least(func(p *Processor) { p.Observe = func(string, execute.Outcome, time.Duration) {} })
	begun := least(func(p *Processor) {
		end := func() {}
		p.Config.Begin = func(ctx context.Context, _ kind.Info, _ *Memory, _ Occasion) (context.Context, func()) {
			return ctx, end
		}
	})
	traced := least(func(p *Processor) {
		p.Config.Begin = func(ctx context.Context, _ kind.Info, _ *Memory, _ Occasion) (context.Context, func()) {
			return tracing.With(ctx, func() tracing.Span { return tracing.Span{} }), func() {}
		}
	})
	if off > none || counted > none || begun > none {
		t.Errorf("a turn has %.0f allocations, with nil observers %.0f, with an observer of calls %.0f, with one of turns %.0f", none, off, counted, begun)
	}
	if traced <= none {
		t.Errorf("a traced turn has %.0f allocations, others %.0f: the test compares the wrong turns", traced, none)
	}
}

func TestLinesOfATurnHaveItsTrace(t *testing.T) {
	var log bytes.Buffer
	newObjectBy(t, false, func(p *Processor) {
		p.Log = slog.New(slog.NewTextHandler(&log, nil))
		p.Config.Begin = func(ctx context.Context, _ kind.Info, _ *Memory, _ Occasion) (context.Context, func()) {
			return tracing.With(ctx, func() tracing.Span { return tracing.Span{TraceID: "t1", SpanID: "s1"} }), func() {}
		}
	})()
	for line := range strings.Lines(log.String()) {
		if strings.Contains(line, "is processed") && strings.Count(line, "trace_id=t1 span_id=s1") == 1 {
			return
		}
	}
	t.Errorf("no line about the handling has the trace:\n%s", log.String())
}
