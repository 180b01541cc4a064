package metacontroller

import (
	"runtime"
	"testing"
)

// A tenant chooses how deep a child is nested. Merging copies each value once.
func TestMergingDeepChildrenTakesLittleMemory(t *testing.T) {
	deep := func(levels int) map[string]any {
		value := map[string]any{"leaf": "x", "kept": "y"}
		for range levels {
			value = map[string]any{"a": value, "kept": "y"}
		}
		return value
	}
	observed, last, desired := deep(3000), deep(3000), deep(3000)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	merged := mergeMaps(observed, last, desired)
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 8<<20 {
		t.Errorf("merging took %d bytes", took)
	}
	if len(merged) != 2 {
		t.Errorf("got %d fields", len(merged))
	}
}
