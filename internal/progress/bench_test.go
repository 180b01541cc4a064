package progress_test

import (
	"testing"
	"time"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/progress"
	"gopf.dev/gopf/storage"
)

// BenchmarkHandling runs one handling with one handler.
func BenchmarkHandling(b *testing.B) {
	ids, now := []string{"create"}, time.Now()
	b.ReportAllocs()
	for b.Loop() {
		state := progress.New(nil)
		state.Superseded(cause.Create)
		state.Select(ids, cause.Create, now)
		for _, id := range state.Due(ids, now) {
			state.Attempted(id, progress.Attempt{Final: true}, now)
		}
		if !state.Done(ids) || len(state.Changed()) != 1 {
			b.Fatal("not done")
		}
	}
}

// BenchmarkStored loads an unfinished handling.
func BenchmarkStored(b *testing.B) {
	ids, now := []string{"a", "b", "c"}, time.Now()
	stored := map[string]storage.Record{}
	for _, id := range ids {
		stored[id] = storage.Record{Started: now, Purpose: "create", Retries: 1, Delayed: now.Add(time.Minute)}
	}
	b.ReportAllocs()
	for b.Loop() {
		state := progress.New(stored)
		state.Select(ids, cause.Create, now)
		if d := state.Delay(ids, now); d.Is != time.Minute {
			b.Fatal(d)
		}
	}
}
