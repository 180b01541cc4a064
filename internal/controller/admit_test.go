package controller

import (
	"testing"

	"gopf.dev/gopf/internal/daemon"
	"gopf.dev/gopf/internal/process"
	"gopf.dev/gopf/internal/queue"
)

// Objects of medium size cost no budget, so their calls must count with their memory.
func TestCallsOfTimersCountWithTheirObjects(t *testing.T) {
	for name, test := range map[string]struct {
		lane       daemon.Lane
		size, fits int
	}{
		"a tiny object":    {daemon.Lane{Namespace: "a"}, 0, 20},
		"a small object":   {daemon.Lane{Namespace: "a"}, 12 << 10, 10},
		"a medium object":  {daemon.Lane{Namespace: "a", Large: true}, 60 << 10, 4},
		"the largest ones": {daemon.Lane{Namespace: "a", Large: true}, 1 << 20, 4},
	} {
		c := &Controller{config: Config{Crowd: &queue.Crowd{Limit: 20 * callMemory}}, processor: &process.Processor{}}
		n := 0
		for c.admit(test.lane, test.size, func() {}) != nil {
			n++
		}
		if n != test.fits {
			t.Errorf("%s: %d calls fit, want %d", name, n, test.fits)
		}
		if c.admit(daemon.Lane{Namespace: "a", Large: !test.lane.Large}, 0, func() {}) == nil {
			t.Errorf("%s: the calls on objects of another size wait, too", name)
		}
	}
}
