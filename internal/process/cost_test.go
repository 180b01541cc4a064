package process

import (
	"runtime"
	"strings"
	"testing"

	"gopf.dev/gopf/internal/jsonvalue"
)

// Not parallel: it measures the allocations of the process.
func TestFootprintEstimatesTheMemoryOfDecodedValues(t *testing.T) {
	for name, text := range map[string]string{
		"objects": `[` + strings.Repeat(`{"a":0},`, 100_000) + `{}]`,
		"wide":    `[{"a":1,"b":2,"c":3,"d":"text","e":5,"f":6,"g":7,"h":8}` + strings.Repeat(`,{"a":1,"b":2,"c":3,"d":"text","e":5,"f":6,"g":7,"h":8}`, 20_000) + `]`,
		"strings": `[` + strings.Repeat(`"the quick brown fox jumps over the lazy dog",`, 40_000) + `""]`,
		"empty":   `[` + strings.Repeat(`{},`, 200_000) + `{}]`,
	} {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		v, err := jsonvalue.Decode([]byte(text))
		runtime.GC()
		runtime.ReadMemStats(&after)
		took := int(after.HeapAlloc) - int(before.HeapAlloc)
		if guess := footprint(v); err != nil || guess < took/2 || guess > took*2 {
			t.Errorf("%s: %d bytes, estimated as %d; error %v", name, took, guess, err)
		}
	}
}
