package object

import (
	"runtime"
	"strings"
	"testing"
)

// The estimate must not be lower than what decoding takes.
func TestTheMemoryOfADecodedObjectIsEstimated(t *testing.T) {
	for name, list := range map[string]string{
		"objects": strings.Repeat(`{"a":1},`, 50_000), "lists": strings.Repeat(`[1],`, 100_000), "numbers": strings.Repeat(`12345,`, 200_000),
		"strings": strings.Repeat(`"`+strings.Repeat("x", 100)+`",`, 10_000), "one string": `"` + strings.Repeat("x", 1<<20) + `",`,
	} {
		body, err := Parse([]byte(`{"metadata":{"name":"x"},"spec":[` + strings.TrimSuffix(list, ",") + `]}`))
		if err != nil {
			t.Fatal(err)
		}
		typed := body.WithType("v1", "X").At("2").Undecoded()
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		fields := typed.Map()
		runtime.GC()
		runtime.ReadMemStats(&after)
		runtime.KeepAlive(fields)
		took, estimated := int(after.HeapAlloc)-int(before.HeapAlloc), typed.Memory()
		if estimated < took || estimated > 8*took {
			t.Errorf("%s: took %d, estimated as %d", name, took, estimated)
		}
	}
	small, err := Parse([]byte(`{"metadata":{"name":"x"}}`))
	if err != nil || small.Memory() != 0 {
		t.Errorf("a small object: got %d, %v", small.Memory(), err)
	}
}
