package process

import (
	"slices"
	"testing"
)

func TestACallWaitsForMemoryOnlyOnce(t *testing.T) {
	const size = 8 << 20
	left, waits := size, []bool{}
	room := callRoom{take: func(bytes int, wait bool) (func(), bool) {
		if bytes > left {
			return nil, false
		}
		left, waits = left-bytes, append(waits, wait)
		return func() { left += bytes }, true
	}}
	steps := []struct {
		bytes int
		ok    bool
		left  int
	}{
		{freeRoom, true, size},                    // is not limited
		{1, true, size - firstRoom},               // waits
		{firstRoom - freeRoom - 1, true, 6 << 20}, // is reserved already
		{1, true, 4 << 20},                        // doubles it
		{-1, true, 4 << 20},                       // is given back to the call
		{2 << 20, true, 4 << 20},                  // takes what is left in the call
		{9 << 20, false, 4 << 20},                 // is too much
		{3 << 20, true, 0},                        // doubles it again
		{2 << 20, false, 0},                       // is too much
		{-(3 << 20), true, 0}, {3 << 20, true, 0}, // is in use again
	}
	for i, step := range steps {
		if err := room.reserve(step.bytes); (err == nil) != step.ok || left != step.left {
			t.Errorf("step %d: %v, and %d bytes are left, want %d", i, err, left, step.left)
		}
	}
	if want := []bool{true, false, false}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if room.leave(); left != size {
		t.Errorf("%d bytes are left at the end", left)
	}
}
