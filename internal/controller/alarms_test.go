package controller

import (
	"testing"
	"time"

	metalabels "k8s.io/apimachinery/pkg/labels"

	"gopf.dev/gopf/internal/process"
)

var farAway = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)

// withAlarm returns a controller that serves the namespace a, and knows an object in it that has
// an alarm and has left the selection.
func withAlarm(t *testing.T) (c *Controller, key string, m *process.Memory) {
	t.Helper()
	mark := uint64(0)
	c = &Controller{
		memories: map[string]*process.Memory{}, members: members{}, config: Config{Clock: NewClock()}, selector: metalabels.Everything(),
		processor: &process.Processor{Mark: func() uint64 { mark++; return mark }},
	}
	c.setServed("a", true)
	key, e := eventIn(t, "a", 1)
	e.left = true
	if m = c.recall(key, e); m == nil || !c.isLeaving(key) {
		t.Fatal("the object is not known, or not leaving")
	}
	if c.setAlarm(key, farAway); c.config.Clock.Len() != 1 {
		t.Fatal("the object has no alarm")
	}
	return c, key, m
}

// Tenants choose the time of an alarm, and they can create and delete any number of objects.
func TestAnObjectThatIsForgottenHasNoAlarm(t *testing.T) {
	for name, end := range map[string]func(c *Controller, key string, m *process.Memory){
		"it is deleted":                           func(c *Controller, key string, m *process.Memory) { c.forget(key, m, nil) },
		"it left the selection":                   func(c *Controller, key string, m *process.Memory) { c.part(key, m) },
		"its resource is no longer served":        func(c *Controller, _ string, _ *process.Memory) { c.abandon() },
		"its namespace is no longer served":       func(c *Controller, _ string, _ *process.Memory) { leaveNamespace(c) },
		"its namespace is served again meanwhile": func(c *Controller, _ string, _ *process.Memory) { leaveNamespace(c); c.setServed("a", true) },
	} {
		t.Run(name, func(t *testing.T) {
			c, key, m := withAlarm(t)
			end(c, key, m)
			if n := c.config.Clock.Len(); n != 0 || len(c.memories) != 0 || c.isLeaving(key) {
				t.Errorf("%d alarms wait; %d objects are known; leaving: %v", n, len(c.memories), c.isLeaving(key))
			}
			c.setAlarm(key, farAway) // by a turn that is still running
			if n := c.config.Clock.Len(); n != 0 {
				t.Errorf("a running turn has set %d alarms", n)
			}
		})
	}
}

func leaveNamespace(c *Controller) {
	c.setServed("a", false)
	c.forgetNamespace("a")
}

func TestAnObjectThatIsSelectedAgainIsNotLeaving(t *testing.T) {
	c, key, _ := withAlarm(t)
	_, e := eventIn(t, "a", 2)
	c.recall(key, e)
	if c.isLeaving(key) || c.config.Clock.Len() != 1 {
		t.Errorf("leaving: %v, %d alarms", c.isLeaving(key), c.config.Clock.Len())
	}
}
