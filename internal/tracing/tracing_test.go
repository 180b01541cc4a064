package tracing

import (
	"bytes"
	"context"
	"log/slog"
	"reflect"
	"strings"
	"testing"
)

var one = Span{TraceID: "t1", SpanID: "s1", Parent: "00-t1-s1-01"}

func TestStampChangesOnlyManifestsOfSampledTraces(t *testing.T) {
	traced := With(t.Context(), func() Span { return one })
	annotated := func(value string) map[string]any {
		return map[string]any{"metadata": map[string]any{"name": "x", "annotations": map[string]any{Annotation: value}}}
	}
	for name, test := range map[string]struct {
		ctx         context.Context
		given, want map[string]any
	}{
		"no trace":        {t.Context(), map[string]any{"kind": "X"}, map[string]any{"kind": "X"}},
		"a hidden trace":  {With(traced, nil), map[string]any{"kind": "X"}, map[string]any{"kind": "X"}},
		"not sampled":     {With(t.Context(), func() Span { return Span{} }), map[string]any{"kind": "X"}, map[string]any{"kind": "X"}},
		"a trace":         {traced, map[string]any{"metadata": map[string]any{"name": "x"}}, annotated(one.Parent)},
		"one of the user": {traced, annotated("declared"), annotated("declared")},
	} {
		if Stamp(test.ctx, test.given); !reflect.DeepEqual(test.given, test.want) {
			t.Errorf("%s: got %v, want %v", name, test.given, test.want)
		}
	}
}

func TestStampDoesNotChangeTheNestedValuesOfTheManifest(t *testing.T) {
	metadata := map[string]any{"annotations": map[string]any{"a": "b"}}
	Stamp(With(t.Context(), func() Span { return one }), map[string]any{"metadata": metadata})
	if want := map[string]any{"annotations": map[string]any{"a": "b"}}; !reflect.DeepEqual(metadata, want) {
		t.Errorf("got %v", metadata)
	}
}

func TestLinesHaveTheSpanOfTheMomentInWhichTheyAreLogged(t *testing.T) {
	var out bytes.Buffer
	var now Span
	log := Log(With(t.Context(), func() Span { return now }), slog.New(slog.NewTextHandler(&out, nil))).With("a", "b")
	log.Info("early")
	now = one
	log.Info("late")
	lines := strings.Split(out.String(), "\n")
	if strings.Contains(lines[0], "trace_id") || !strings.HasSuffix(lines[1], "msg=late a=b trace_id=t1 span_id=s1") {
		t.Errorf("got %q", lines)
	}
}

func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	ctx, log, manifest := t.Context(), slog.New(slog.DiscardHandler), map[string]any{}
	if n := testing.AllocsPerRun(100, func() {
		if Log(ctx, log) != log {
			t.Error("another logger")
		}
		Stamp(ctx, manifest)
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
