package process

import (
	"bytes"
	"context"
	"log/slog"
	"runtime"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/execute"
	"gopf.dev/gopf/internal/tracing"
	"gopf.dev/gopf/kind"
)

// TestTracingAndMetricsThatAreOffAllocateNothing compares turns with those of the parts that
// observe them.
func TestTracingAndMetricsThatAreOffAllocateNothing(t *testing.T) {
	average := func(setup func(*Processor)) float64 {
		const runs = 500
		handle := newObjectBy(t, false, setup)
		handle()
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		for range runs {
			handle()
		}
		runtime.ReadMemStats(&after)
		return float64(after.Mallocs-before.Mallocs) / runs
	}
	none := average(func(*Processor) {})
	off := average(func(p *Processor) { p.Config.Begin, p.Observe, p.Trail = nil, nil, nil })
	counted := average(func(p *Processor) { p.Observe = func(string, execute.Outcome, time.Duration) {} })
	begun := average(func(p *Processor) {
		end := func() {}
		p.Config.Begin = func(ctx context.Context, _ kind.Info, _ *Memory, _ Occasion) (context.Context, func()) {
			return ctx, end
		}
	})
	traced := average(func(p *Processor) {
		p.Config.Begin = func(ctx context.Context, _ kind.Info, _ *Memory, _ Occasion) (context.Context, func()) {
			return tracing.With(ctx, func() tracing.Span { return tracing.Span{} }), func() {}
		}
	})
	if most := none + poolNoise; off > most || counted > most || begun > most {
		t.Errorf("a turn has %.2f allocations, with nil observers %.2f, with an observer of calls %.2f, with one of turns %.2f", none, off, counted, begun)
	}
	if traced <= none+0.5 && poolNoise < 1 {
		t.Errorf("a traced turn has %.2f allocations, others %.2f: the test compares the wrong turns", traced, none)
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
