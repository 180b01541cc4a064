package process

import (
	"slices"
	"testing"
)

func TestACallWaitsForMemoryOnlyOnce(t *testing.T) {
	const size = 8 << 20
	left, waits := size, []bool{}
	room := callRoom{take: func(bytes, _ int, wait bool) (func(), bool) {
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
		{freeRoom, true, size},                             // is not limited
		{1, true, size - firstRoom},                        // waits
		{firstRoom - freeRoom - 1, true, size - firstRoom}, // is reserved already
		{1, true, size - 2*firstRoom},                      // doubles it
		{-1, true, size - 2*firstRoom},                     // is given back to the call
		{firstRoom, true, size - 2*firstRoom},              // takes what is left in the call
		{size, false, size - 2*firstRoom},                  // is too much
		{size - 3*firstRoom, true, firstRoom},              // takes so much more
		{2 * firstRoom, false, firstRoom},                  // is too much
		{firstRoom, true, 0},                               // takes the rest, because it cannot be doubled
		{-firstRoom, true, 0}, {firstRoom, true, 0},        // is in use again
	}
	for i, step := range steps {
		if err := room.reserve(step.bytes); (err == nil) != step.ok || left != step.left {
			t.Errorf("step %d: %v, and %d bytes are left, want %d", i, err, left, step.left)
		}
	}
	if want := []bool{true, false, false, false}; !slices.Equal(waits, want) {
		t.Errorf("waits %v, want %v", waits, want)
	}
	if room.leave(); left != size {
		t.Errorf("%d bytes are left at the end", left)
	}
}
