package handler_test

import (
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

func BenchmarkMatch(b *testing.B) {
	body, err := object.Parse([]byte(`{"metadata":{"name":"n","labels":{"app":"bench","tier":"prod"},"annotations":{"a":"b"}},"spec":{"size":3}}`))
	if err != nil {
		b.Fatal(err)
	}
	criteria := handler.Criteria{
		Labels:      []handler.Key{{Name: "tier", Match: handler.Equal("prod")}},
		Annotations: []handler.Key{{Name: "a", Match: handler.Present}},
		Fields:      []handler.Field{{Path: []string{"spec", "size"}, Match: handler.Equal(int64(3))}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if !criteria.Match(body) {
			b.Fatal("no match")
		}
	}
}

// benchmarkRequest returns a change of an object.
func benchmarkRequest(b *testing.B) *handler.Request {
	b.Helper()
	body, err := object.Parse([]byte(`{"metadata":{"name":"n","labels":{"app":"bench","tier":"prod"},"annotations":{"a":"b"}},"spec":{"size":3}}`))
	if err != nil {
		b.Fatal(err)
	}
	before := map[string]any{"spec": map[string]any{"size": int64(2)}}
	now := map[string]any{"spec": map[string]any{"size": int64(3)}}
	return &handler.Request{Body: body, Cause: &cause.Cause{Reason: cause.Update, Old: before, New: now, Diff: diff.Of(before, now)}}
}

// BenchmarkMiss is the evaluation of all filters of a change handler, which runs for every
// event. It must not allocate: texts are made only for reports.
func BenchmarkMiss(b *testing.B) {
	h := &handler.Handler{
		ID: "h", Reasons: map[cause.Reason]bool{cause.Update: true}, Change: &handler.Change{Path: []string{"spec", "size"}},
		Criteria: handler.Criteria{Labels: []handler.Key{{Name: "tier", Match: handler.Equal("prod")}, {Name: "app", Match: handler.Equal("other")}}},
	}
	r := benchmarkRequest(b)
	if got := h.Miss(r); got != (handler.Miss{Criterion: handler.OfLabel, Index: 1}) {
		b.Fatalf("got %+v", got)
	}
	b.ReportAllocs()
	for b.Loop() {
		h.Miss(r)
	}
}

// BenchmarkExplain is the text of one filter in a report.
func BenchmarkExplain(b *testing.B) {
	h := &handler.Handler{ID: "h", Criteria: handler.Criteria{Labels: []handler.Key{{Name: "tier", Match: handler.Equal("dev"), Want: `"dev"`}}}}
	r := benchmarkRequest(b)
	b.ReportAllocs()
	for b.Loop() {
		h.Explain(handler.Miss{Criterion: handler.OfLabel}, r)
	}
}
