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
