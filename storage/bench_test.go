package storage_test

import (
	"fmt"
	"testing"

	"gopf.dev/gopf/storage"
)

func BenchmarkEssence(b *testing.B) {
	var payload []any
	for i := range 10 {
		payload = append(payload, map[string]any{"name": fmt.Sprint("entry-", i), "value": "volume1 claim2 namespace3 replica4 image5"})
	}
	essence := map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "bench"}}, "spec": map[string]any{"payload": payload, "size": int64(1)}}
	text, err := storage.EncodeEssence(essence)
	if err != nil {
		b.Fatal(err)
	}
	b.Run("encode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := storage.EncodeEssence(essence); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("decode", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, _, err := storage.DecodeEssence(text); err != nil {
				b.Fatal(err)
			}
		}
	})
}
