package history_test

import (
	"testing"
	"time"

	"gopf.dev/gopf/internal/history"
)

// BenchmarkAdd is one step of one object. Its limit is 150 ns and no allocation.
func BenchmarkAdd(b *testing.B) {
	ring := history.New()
	e := history.Entry{At: time.Now(), Took: time.Millisecond, Step: history.Call, Handler: "create", Outcome: "succeeded"}
	b.ReportAllocs()
	for b.Loop() {
		ring.Add("5b0d0a3e-6a35-4a4b-b5a3-0d7a8a1b2c3d", e)
	}
}

// BenchmarkOf is the timeline of one object in a full ring.
func BenchmarkOf(b *testing.B) {
	ring := history.New()
	for i := range 20000 {
		ring.Add(string(rune('a'+i%20)), history.Entry{At: time.Unix(int64(i), 0), Step: history.Turn})
	}
	b.ReportAllocs()
	for b.Loop() {
		if len(ring.Of("a")) == 0 {
			b.Fatal("no entries")
		}
	}
}
