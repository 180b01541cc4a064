package daemon

import (
	"testing"
	"unsafe"
)

// Each object with a timer has these for as long as it exists. The sizes are those of
// allocations: one more field makes the next size.
func TestAWaitingTimerTakesLittleMemory(t *testing.T) {
	for name, c := range map[string]struct{ size, most uintptr }{
		"a task":    {unsafe.Sizeof(Task{}), 144},
		"an object": {unsafe.Sizeof(Object{}), 144},
	} {
		if c.size > c.most {
			t.Errorf("%s takes %d bytes, want at most %d", name, c.size, c.most)
		}
	}
}
