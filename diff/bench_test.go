package diff_test

import (
	"fmt"
	"testing"

	"gopf.dev/gopf/diff"
)

// spec is of typical size.
func spec(size int64) map[string]any {
	var payload []any
	for i := range 10 {
		payload = append(payload, map[string]any{"name": fmt.Sprint("entry-", i), "value": "volume1 claim2 namespace3 replica4 image5"})
	}
	return map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "bench"}}, "spec": map[string]any{"payload": payload, "size": size}}
}

func BenchmarkOf(b *testing.B) {
	old := spec(1)
	for name, now := range map[string]map[string]any{"equal": spec(1), "changed": spec(2)} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				diff.Of(old, now)
			}
		})
	}
}

// BenchmarkDepth shows that time grows as the number of values does: ns/level
// stays the same.
func BenchmarkDepth(b *testing.B) {
	for _, depth := range []int{10, 100, 1_000, 10_000} {
		old, now := nested(depth, 1, 1), nested(depth, 1, 2)
		b.Run(fmt.Sprint(depth), func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				diff.Of(old, now)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(depth), "ns/level")
		})
	}
}
