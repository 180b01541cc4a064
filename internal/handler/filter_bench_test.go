package handler_test

import (
	"testing"

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
