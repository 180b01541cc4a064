package gopftest

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// A watch is open. Then the fault is set, and an object is created and changed twice.
func TestEffectsOnEvents(t *testing.T) {
	events := Requests("watch", "kopfexamples")
	whole := []string{"ADDED a value", "MODIFIED a 1", "MODIFIED a 2"}
	tests := map[string]struct {
		match  Match
		effect Effect
		atOnce []string
		later  []string // after an hour
	}{
		"duplicate":     {events, DuplicateEvents(), []string{"ADDED a value", "ADDED a value", "MODIFIED a 1", "MODIFIED a 1", "MODIFIED a 2", "MODIFIED a 2"}, []string{}},
		"duplicate one": {events.Nth(2), DuplicateEvents(), []string{"ADDED a value", "MODIFIED a 1", "MODIFIED a 1", "MODIFIED a 2"}, []string{}},
		"replay":        {events, ReplayEvents(), []string{"ADDED a value", "MODIFIED a 1", "MODIFIED a value", "MODIFIED a 2", "MODIFIED a 1"}, []string{}},
		"skip":          {events.Nth(2), SkipEvents(), []string{"ADDED a value", "MODIFIED a 2"}, []string{}},
		"garble":        {events.Nth(2), GarbleEvents(), []string{"ADDED a value", "broken", "MODIFIED a 2"}, []string{}},
		"cut":           {events.Nth(2), CutBeforeEvents(), []string{"ADDED a value", "unexpected EOF", "end"}, nil},
		"cut inside":    {events.Nth(2), CutInsideEvents(), []string{"ADDED a value", "broken", "unexpected EOF", "end"}, nil},
		"delay":         {events, DelayEvents(time.Minute), []string{}, whole},
		"delay one":     {events.Nth(3), DelayEvents(time.Minute), whole[:2], whole[2:]},
		"freeze":        {events.During(time.Minute), FreezeStreams(), []string{}, whole},
		"freeze others": {Requests("watch", "pods"), FreezeStreams(), whole, []string{}},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			inBubble(t, func(t *testing.T, c *Cluster) {
				lines := follow(t, c, "timeoutSeconds=7200&"+now(c))
				c.Fault(tt.match, tt.effect)
				c.Create(t, example("a"))
				c.Patch(t, examples, "default", "a", `{"spec":{"field":"1"}}`)
				c.Patch(t, examples, "default", "a", `{"spec":{"field":"2"}}`)
				if diff := cmp.Diff(tt.atOnce, drain(lines)); diff != "" {
					t.Errorf("immediately: -want, +got:\n%s", diff)
				}
				if tt.later == nil {
					return
				}
				time.Sleep(time.Hour)
				if diff := cmp.Diff(tt.later, drain(lines)); diff != "" {
					t.Errorf("later: -want, +got:\n%s", diff)
				}
			})
		})
	}
}

func TestFrozenStreamsSendNoBookmarks(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		lines := follow(t, c, "allowWatchBookmarks=true&timeoutSeconds=7200&"+now(c))
		f := c.Fault(Requests("watch", ""), FreezeStreams())
		c.Create(t, example("a"))
		time.Sleep(10 * time.Minute)
		if got := drain(lines); len(got) != 0 {
			t.Errorf("got %v", got)
		}
		f.Stop()
		if got := drain(lines); len(got) == 0 || got[0] != "ADDED a value" {
			t.Errorf("got %v", got)
		}
	})
}

func TestDelayedEventsKeepTheirIntervals(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		lines := follow(t, c, now(c))
		c.Fault(Requests("watch", ""), DelayEvents(8*time.Second))
		c.Create(t, example("a"))
		time.Sleep(3 * time.Second)
		c.Create(t, example("b"))
		time.Sleep(4 * time.Second)
		for _, want := range [][]string{{}, {"ADDED a value"}, {}, {}, {"ADDED b value"}} {
			if diff := cmp.Diff(want, drain(lines)); diff != "" {
				t.Errorf("%v: -want, +got:\n%s", time.Now(), diff)
			}
			time.Sleep(time.Second)
		}
	})
}

func TestFailInStreamSendsTheErrorAsAnEvent(t *testing.T) {
	inBubble(t, func(t *testing.T, c *Cluster) {
		c.Fault(Requests("watch", "kopfexamples").First(1), FailInStream(apierrors.NewResourceExpired("gone")))
		if diff := cmp.Diff([]string{"ERROR Expired", "end"}, drain(follow(t, c, now(c)))); diff != "" {
			t.Errorf("-want, +got:\n%s", diff)
		}
		if got := drain(follow(t, c, now(c))); len(got) != 0 {
			t.Errorf("the second stream: %v", got)
		}
	})
}
