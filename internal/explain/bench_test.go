package explain_test

import (
	"testing"

	"gopf.dev/gopf/internal/explain"
)

// BenchmarkReport is the whole explanation of one object, as for each object of a plan.
func BenchmarkReport(b *testing.B) {
	situation := situations()[0]
	var r *explain.Report
	b.ReportAllocs()
	for b.Loop() {
		r = situation.report(b)
	}
	if r.Summary == "" {
		b.Fatal("no report")
	}
}
