package engine_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// statePlaces are the places of the state of an operator.
var statePlaces = map[string]func(*gopf.Operator){
	"state in annotations": func(*gopf.Operator) {},
	"state in the status":  func(op *gopf.Operator) { op.Settings.Persistence = gopf.StateInStatus("op") },
}

// working is an operator whose handlers take a while.
func working(took time.Duration, choose ...func(*gopf.Operator)) *gopf.Operator {
	op := gopf.New()
	op.Settings.Peering.Standalone = true
	for _, fn := range choose {
		fn(op)
	}
	x := gopf.For[*Example](op, resource)
	work := func(context.Context, *gopf.Change[*Example]) error {
		time.Sleep(took)
		return nil
	}
	x.OnCreate("create", work)
	x.OnUpdate("update", work)
	x.OnDelete("delete", work)
	return op
}

const anotherWriter = "Another writer changes the state"

// edit changes the objects repeatedly.
func edit(t *testing.T, c *gopftest.Cluster, times int) {
	t.Helper()
	for i := range times {
		c.Patch(t, resource, "default", "x", fmt.Sprintf(`{"spec":{"field":"v%d"}}`, i))
		time.Sleep(time.Minute)
	}
}

func TestTwoOperatorsWithTheSameIdentityAreDetected(t *testing.T) {
	for place, choose := range statePlaces {
		t.Run(place, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var one, two lines
				gopftest.Start(t, working(time.Second, choose), c, gopf.Log(one.logger()))
				gopftest.Start(t, working(2*time.Second, choose), c, gopf.Log(two.logger()))
				settle()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Minute)
				edit(t, c, 10)
				if n := one.count(anotherWriter) + two.count(anotherWriter); n == 0 || one.count(anotherWriter) > 1 || two.count(anotherWriter) > 1 {
					t.Errorf("%d and %d warnings", one.count(anotherWriter), two.count(anotherWriter))
				}
				if !two.has(anotherWriter, "[default/x]", "manager=") {
					t.Error("the warning does not name the object and the manager")
				}
			})
		})
	}
}

func TestOneOperatorIsNotMistakenForTwo(t *testing.T) {
	for name, disturb := range map[string]func(t *testing.T, c *gopftest.Cluster){
		"in peace": func(*testing.T, *gopftest.Cluster) {},
		"lost responses": func(_ *testing.T, c *gopftest.Cluster) {
			c.Fault(gopftest.Writes("kopfexamples").Where(ours), gopftest.LoseAnswer())
		},
		"refused writes": func(_ *testing.T, c *gopftest.Cluster) {
			c.Fault(gopftest.Writes("kopfexamples").Where(ours).First(20), gopftest.Fail(503))
		},
		"slow responses": func(_ *testing.T, c *gopftest.Cluster) {
			c.Fault(gopftest.Writes("kopfexamples").Where(ours), gopftest.HoldAnswer(3*time.Second))
		},
		"streams cut":      func(t *testing.T, c *gopftest.Cluster) { every(t, 7*time.Second, c.CutStreams) },
		"expired versions": func(t *testing.T, c *gopftest.Cluster) { every(t, 11*time.Second, c.Expire) },
		"a busy status": func(t *testing.T, c *gopftest.Cluster) {
			n := 0
			every(t, 500*time.Millisecond, func() {
				n++
				c.PatchStatus(t, resource, "default", "x", fmt.Sprintf(`{"status":{"beat":%d}}`, n))
			})
		},
		"a paused object": func(t *testing.T, c *gopftest.Cluster) {
			n := 0
			every(t, 13*time.Second, func() {
				n++
				c.Patch(t, resource, "default", "x", fmt.Sprintf(`{"metadata":{"annotations":{"kopf.zalando.org/pause":"%d"}}}`, n))
			})
		},
	} {
		for place, choose := range statePlaces {
			t.Run(name+", "+place, func(t *testing.T) {
				t.Parallel()
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					var log lines
					gopftest.Start(t, working(time.Second, choose), c, gopf.Log(log.logger()))
					settle()
					c.Create(t, example("x", "a"))
					time.Sleep(10 * time.Second)
					disturb(t, c)
					edit(t, c, 10)
					if log.has(anotherWriter) || log.has("without a write of this process") {
						t.Error("the operator warned about another writer")
					}
				})
			})
		}
	}
}

// every calls fn repeatedly until the test ends.
func every(t *testing.T, interval time.Duration, fn func()) {
	stop, stopped := make(chan struct{}), make(chan struct{})
	t.Cleanup(func() { close(stop); <-stopped })
	go func() {
		defer close(stopped)
		for {
			select {
			case <-stop:
				return
			case <-time.After(interval):
				fn()
			}
		}
	}()
}

func TestARollingUpdateIsNotMistakenForTwoOperators(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		c.Create(t, example("x", "a"))
		for range 6 { // each overlaps with the next for a while, as in rolling updates
			stop := gopftest.Start(t, working(time.Second), c, gopf.Log(log.logger()))
			time.Sleep(time.Minute)
			edit(t, c, 3)
			next := gopftest.Start(t, working(2*time.Second), c, gopf.Log(log.logger()))
			edit(t, c, 1)
			stop()
			edit(t, c, 3)
			next()
		}
		if log.has(anotherWriter) {
			t.Error("the operator warned about another writer")
		}
	})
}

func TestARestoreIsNotMistakenForAnotherOperator(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var log lines
		gopftest.Start(t, working(time.Second), c, gopf.Log(log.logger()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		for range 4 {
			backup := c.Backup()
			edit(t, c, 2)
			c.Restore(t, backup)
			time.Sleep(time.Minute)
		}
		if log.has(anotherWriter) {
			t.Error("the operator warned about another writer")
		}
	})
}

func TestAFinalizerOfAnUnknownOperatorIsRemovedWithAWarning(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		for i := range 3 {
			obj := example(fmt.Sprintf("x%d", i), "a")
			obj.SetFinalizers([]string{"kopf.zalando.org/KopfFinalizerMarker", "example.com/other"})
			c.Create(t, obj)
		}
		var log lines
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", func(context.Context, *gopf.Change[*Example]) error { return nil })
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		time.Sleep(time.Minute)
		if n := log.count("Removing a finalizer that this process did not put"); n != 1 {
			t.Errorf("%d warnings", n)
		}
		for i := range 3 {
			if got := get(t, c, fmt.Sprintf("x%d", i)).GetFinalizers(); len(got) != 1 || got[0] != "example.com/other" {
				t.Errorf("the finalizers are %q", got)
			}
		}
	})
}

func TestOwnFinalizersAreRemovedWithoutWarningAfterARestart(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		stop := gopftest.Start(t, working(0), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(time.Minute)
		stop()
		var log lines
		gopftest.Start(t, working(0), c, gopf.Log(log.logger()))
		settle()
		c.Delete(t, resource, "default", "x")
		time.Sleep(time.Minute)
		if log.has("Removing a finalizer") {
			t.Error("the log warns about the operator's own finalizer")
		}
	})
}
