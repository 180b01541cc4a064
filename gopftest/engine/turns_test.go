package engine_test

import (
	"context"

	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// base returns the last-handled configuration of an object.
func base(t *testing.T, c *gopftest.Cluster, name string) string {
	t.Helper()
	return get(t, c, name).GetAnnotations()[annotated]
}

// checkTakenOver checks that nothing was handled twice, although another operator
// finished the work of the first one.
func checkTakenOver(t *testing.T, c *gopftest.Cluster, diary *calls, want ...string) {
	t.Helper()
	synctest.Wait()
	if got := diary.all(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	if b := base(t, c, "x"); !strings.Contains(b, `"field":"b"`) {
		t.Errorf("the last-handled configuration is %s", b)
	}
	for key := range get(t, c, "x").GetAnnotations() {
		if key != annotated && key != bound {
			t.Errorf("the annotation %s is left over", key)
		}
	}
}

func TestWorkThatAPeerFinishedInAPauseIsNotDoneAgain(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		meet(t, c)
		var diary calls
		delayed := func(name string, priority int) *gopf.Operator {
			op := gopf.New()
			op.Settings.Peering.Identity, op.Settings.Peering.Priority = name, priority
			x := gopf.For[*Example](op, resource)
			x.OnCreate("create", diary.failing(name, 1, time.Minute))
			x.OnUpdate("update", diary.handler(name))
			return op
		}
		gopftest.Start(t, delayed("low", 0), c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		stop := gopftest.Start(t, delayed("high", 1), c, gopf.Log(quiet()))
		time.Sleep(2 * time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(10 * time.Second)
		stop()
		time.Sleep(time.Hour)
		checkTakenOver(t, c, &diary, "low create a #0", "high create a #1", "high update b")
	})
}

func TestWorkThatAnotherOperatorFinishedDuringAFreezeIsNotRepeated(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		delayed := func(name string) *gopf.Operator {
			op := gopf.New()
			x := gopf.For[*Example](op, resource)
			x.OnCreate("create", diary.failing(name, 1, time.Minute))
			x.OnUpdate("update", diary.handler(name))
			return op
		}
		op := delayed("one")
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(10 * time.Second)
		op.Pause("for a test")
		stop := gopftest.Start(t, delayed("two"), c, gopf.Log(quiet()))
		time.Sleep(2 * time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(10 * time.Second)
		stop()
		c.Fault(gopftest.Requests("list", "kopfexamples"), gopftest.Hold(20*time.Second)) // longer than the alarms
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.Hold(20*time.Second))
		op.Unpause()
		time.Sleep(time.Hour)
		checkTakenOver(t, c, &diary, "one create a #0", "two create a #1", "two update b")
	})
}

func TestAnAlarmAfterAPauseWaitsForTheList(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnCreate("create", diary.failing("create", 1, time.Minute))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		time.Sleep(30 * time.Second)
		op.Pause("for a test")
		time.Sleep(20 * time.Second)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		c.Fault(gopftest.Requests("list", "kopfexamples"), gopftest.Hold(30*time.Second))
		c.Fault(gopftest.Requests("watch", "kopfexamples"), gopftest.Hold(30*time.Second))
		op.Unpause() // the alarm fires in ten seconds, the list arrives in thirty
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"create create a #0", "create create b #1"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAHandlerThatRanDuringAPauseKeepsTheRecordsOfAnotherOperator(t *testing.T) {
	for name, handlers := range map[string][]string{"one handler": {"create"}, "several handlers": {"create", "another"}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				operator := func(name string, takes time.Duration) *gopf.Operator {
					op := gopf.New()
					x := gopf.For[*Example](op, resource)
					for _, id := range handlers {
						x.OnCreate(id, func(_ context.Context, ch *gopf.Change[*Example]) error {
							diary.add("%s %s", name, id)
							time.Sleep(takes)
							ch.Patch.Annotate("by", name)
							return nil
						})
					}
					x.OnUpdate("update", func(_ context.Context, ch *gopf.Change[*Example]) error {
						diary.add("%s update, the spec has changed: %v", name, strings.Contains(ch.Diff.String(), "spec"))
						return nil
					})
					return op
				}
				op := operator("one", 10*time.Minute)
				gopftest.Start(t, op, c, gopf.Log(quiet()))
				settle()
				c.Create(t, example("x", "a"))
				settle()
				op.Pause("for a test")
				two := operator("two", 0)
				stop := gopftest.Start(t, two, c, gopf.Log(quiet()))
				time.Sleep(time.Minute)
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
				time.Sleep(time.Minute)
				stop()
				op.Unpause()
				before := len(diary.all())
				time.Sleep(time.Hour)
				synctest.Wait()
				// The changes of the handler are written, and are a change for update handlers.
				if got, want := diary.all()[before:], []string{"one update, the spec has changed: false"}; !slices.Equal(got, want) {
					t.Errorf("got %q, want %q", got, want)
				}
				annotations := get(t, c, "x").GetAnnotations()
				if b := annotations[annotated]; !strings.Contains(b, `"field":"b"`) || !strings.Contains(b, `"by":"one"`) {
					t.Errorf("the last-handled configuration is %s", b)
				}
				if len(annotations) != 3 { // including the binding
					t.Errorf("left over: %v", annotations)
				}
			})
		})
	}
}

func TestAUserChangeDuringAPauseDoesNotUndoTheHandler(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("create %s", ch.Object.Spec.Field)
			time.Sleep(time.Minute)
			ch.SetResult("done")
			return nil
		})
		x.OnUpdate("update", diary.handler("update"))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "a"))
		settle()
		op.Pause("for a test")
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		op.Unpause()
		time.Sleep(time.Hour)
		if got, want := diary.all(), []string{"create a", "update update b"}; !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
		if status, _ := get(t, c, "x").Object["status"].(map[string]any); status["create"] != "done" {
			t.Errorf("the result is lost: %v", status)
		}
	})
}
