package engine_test

import (
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// suspected reports whether an operator took legitimate writes for those of another
// operator that runs at the same time.
func suspected(t *testing.T, log *lines) {
	t.Helper()
	if log.has(anotherWriter) {
		t.Error("another writer is suspected")
	}
}

func TestATakeoverFromKopfIsNotTakenForAnotherOperator(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		for i := range 5 { // handled by Kopf, and in the middle of it
			obj := example(fmt.Sprintf("kopf-%d", i), "a")
			obj.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker"})
			obj.SetAnnotations(map[string]string{"kopf.zalando.org/last-handled-configuration": "{\"spec\":{\"field\":\"a\"}}\n"})
			if i%2 == 0 {
				obj.SetAnnotations(map[string]string{
					"kopf.zalando.org/create": `{"started":"2026-01-01T00:00:00.000000+00:00","purpose":"create","retries":1,"success":false,"failure":false,"delayed":"2026-01-01T00:01:00.000000+00:00"}` + "\n",
				})
			}
			c.Create(t, obj)
		}
		var log lines
		gopftest.Start(t, working(time.Second), c, gopf.Log(log.logger()))
		settle()
		for round := range 5 {
			for i := range 5 {
				c.Patch(t, resource, "default", fmt.Sprintf("kopf-%d", i), fmt.Sprintf(`{"spec":{"field":"v%d"}}`, round))
			}
			time.Sleep(time.Minute)
		}
		suspected(t, &log)
		if log.has("without a write of this process") {
			t.Error("a takeover counts as a foreign write")
		}
	})
}

// A frozen operator leaves its objects to another one with the same names.
func TestWritesDuringAFreezeAreNotTakenForAnotherOperator(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		op := working(time.Second)
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		for range 5 {
			c.Patch(t, resource, "default", "x", `{"spec":{"field":"frozen"}}`)
			time.Sleep(500 * time.Millisecond) // a handler runs
			op.Pause("another one works")
			time.Sleep(10 * time.Second)
			stop := gopftest.Start(t, working(time.Second), c, gopf.Log(quiet()))
			settle()
			edit(t, c, 2)
			stop()
			op.Unpause()
			edit(t, c, 2)
		}
		suspected(t, &log)
	})
}

func TestWritesOfAPreferredPeerAreNotTakenForAnotherOperator(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Create(t, example("x", "a"))
		peer := func(name string, priority int) *gopf.Operator {
			op := working(time.Second)
			op.Settings.Peering.Standalone, op.Settings.Peering.Identity, op.Settings.Peering.Priority = false, name, priority
			return op
		}
		var log lines
		meet(t, c)
		gopftest.Start(t, peer("ours", 1), c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		for range 5 {
			edit(t, c, 2)
			c.Patch(t, resource, "default", "x", `{"spec":{"field":"just before"}}`)
			var other lines
			stop := gopftest.Start(t, peer("preferred", 2), c, gopf.Log(other.logger()))
			time.Sleep(time.Minute)
			edit(t, c, 3)
			stop()
			suspected(t, &other)
			time.Sleep(2 * time.Minute) // until the record of the peer is gone
		}
		suspected(t, &log)
	})
}

func TestWritesOfAFormerLeaderAreNotTakenForAnotherOperator(t *testing.T) {
	t.Parallel()
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		c.Create(t, example("x", "a"))
		var log lines
		replica := func(i int) (stop func()) {
			op := working(time.Second)
			op.Settings.Election.Enabled, op.Settings.Election.Name, op.Settings.Election.Identity = true, "example", fmt.Sprintf("replica-%d", i)
			return gopftest.Start(t, op, c, gopf.Log(log.logger()))
		}
		stop := replica(0)
		time.Sleep(time.Minute)
		for i := 1; i <= 6; i++ {
			next := replica(i) // it stands by
			edit(t, c, 2)
			c.Patch(t, resource, "default", "x", fmt.Sprintf(`{"spec":{"field":"handover %d"}}`, i))
			time.Sleep(500 * time.Millisecond) // a handler runs
			stop()
			time.Sleep(time.Minute)
			edit(t, c, 2)
			stop = next
		}
		stop()
		suspected(t, &log)
		if log.has("without a write of this process") {
			t.Error("the writes of a former leader count as foreign")
		}
	})
}
