package filter_test

import (
	"testing"

	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/object"
)

func BenchmarkMatch(b *testing.B) {
	body, err := object.Parse([]byte(`{"metadata":{"name":"n","labels":{"app":"bench","tier":"prod"},"annotations":{"a":"b"}},"spec":{"size":3}}`))
	if err != nil {
		b.Fatal(err)
	}
	criteria := filter.Criteria{
		Labels:      []filter.Key{{Name: "tier", Match: filter.Equal("prod")}},
		Annotations: []filter.Key{{Name: "a", Match: filter.Present}},
		Fields:      []filter.Field{{Path: []string{"spec", "size"}, Match: filter.Equal(int64(3))}},
	}
	b.ReportAllocs()
	for b.Loop() {
		if !criteria.Match(body) {
			b.Fatal("no match")
		}
	}
}
