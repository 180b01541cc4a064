package engine_test

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestTheStateOfAllObjectsMovesWithoutCallingHandlers(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		const objects = 7
		runs(t, c, plainOperator(&diary, nil), func() {
			for i := range objects {
				c.Create(t, example(fmt.Sprint("x", i), "a"))
			}
		})
		move := func(to string, dryRun bool, config func(*gopf.Operator)) string {
			t.Helper()
			var out bytes.Buffer
			op := plainOperator(&diary, config)
			if err := op.MoveState(t.Context(), to, dryRun, &out, gopf.Cluster(c.RESTConfig()), gopf.Log(quiet())); err != nil {
				t.Fatal(err)
			}
			return out.String()
		}
		check := func(inStatus bool) {
			t.Helper()
			for _, obj := range c.List(t, resource, "default") {
				state, _, _ := unstructured.NestedMap(obj.Object, "status", "things")
				if (state["last-handled-configuration"] != nil) != inStatus || (len(obj.GetAnnotations()) == 0) != inStatus || state["moved"] != nil {
					t.Errorf("in the status %t: %v", inStatus, obj.Object)
				}
			}
		}
		before := patches(c)
		if out := move("status", true, inStatus("things")); !strings.Contains(out, "7 seen, 7 to move, 0 failed") || patches(c) != before {
			t.Errorf("a dry run printed %q and wrote %d times", out, patches(c)-before)
		}
		if out := move("status", false, inStatus("things")); !strings.Contains(out, "7 seen, 7 moved, 0 failed") {
			t.Errorf("printed %q", out)
		}
		check(true)
		if out := move("status", false, inStatus("things")); !strings.Contains(out, "7 seen, 0 moved, 0 failed") {
			t.Errorf("a repeated move printed %q", out)
		}
		runs(t, c, plainOperator(&diary, inStatus("things")), nil)
		move("annotations", false, inStatus("things"))
		check(false)
		runs(t, c, plainOperator(&diary, nil), func() { changeField(t, c, "x0", "b") })
		if got := diary.all(); len(got) != objects+1 || !slices.Contains(got, "update a->b") {
			t.Errorf("calls %q, want %d creations and one update", got, objects)
		}
	})
}

func TestAnInterruptedMoveContinues(t *testing.T) {
	for _, to := range []string{"status", "annotations"} {
		for at := 1; at <= 3; at++ {
			t.Run(fmt.Sprintf("to %s, after write %d", to, at), func(t *testing.T) {
				bubble(t, func(t *testing.T, c *gopftest.Cluster) {
					var diary calls
					annotations := func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }
					from, into := annotations, inStatus("things")
					if to == "annotations" {
						from, into = into, from
					}
					half := func(config func(*gopf.Operator)) *gopf.Operator {
						op := plainOperator(&diary, config)
						gopf.For[*Example](op, resource).OnCreate("late", diary.failing("late", 1, 2*time.Minute))
						return op
					}
					runs(t, c, half(from), func() { c.Create(t, example("x", "a")) })
					w := &wire{next: c.Transport(), at: at, mishap: crashAfter, kill: func() {}}
					cfg := c.RESTConfig()
					cfg.Transport = w
					_ = half(into).MoveState(t.Context(), to, false, io.Discard, gopf.Cluster(cfg), gopf.Log(quiet()))
					for range 3 {
						runs(t, c, half(into), nil)
					}
					want := []string{"create a", "late create a #0", "late create a #1"}
					if !slices.Equal(diary.all(), want) {
						t.Errorf("calls %q, want %q", diary.all(), want)
					}
				})
			})
		}
	}
}

// A move to the status leaves the records of a handling in annotations, until the rest of
// the object is written.
func TestRecordsLeftInAnnotationsGoWithTheNextMoveAndNotAtARestart(t *testing.T) {
	annotations := func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }
	for name, leftBase := range map[string]bool{"of a creation": false, "of an update": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				late := func(config func(*gopf.Operator)) *gopf.Operator {
					op := gopf.New()
					config(op)
					x := gopf.For[*Example](op, resource)
					x.On(gopf.Create|gopf.Update, "first", diary.handler("first"))
					x.On(gopf.Create|gopf.Update, "second", func(ctx context.Context, ch *gopf.Change[*Example]) error {
						ch.Sub("sub", diary.failing("sub", 1, 2*time.Minute))
						return ch.RunSubs(ctx)
					})
					return op
				}
				runs(t, c, late(annotations), func() {
					c.Create(t, example("x", "a"))
					if leftBase {
						time.Sleep(10 * time.Minute)
						changeField(t, c, "x", "b")
					}
				})
				runs(t, c, late(inStatus("things")), func() { time.Sleep(10 * time.Minute) })
				x := get(t, c, "x")
				if _, left := x.GetAnnotations()["kopf.zalando.org/second.sub"]; !left || baseIn(x, "things") == "" {
					t.Fatalf("the records were not moved to the status as this test needs it: %v", x.Object)
				}
				calls, writes := len(diary.all()), patches(c)
				for range 2 {
					runs(t, c, late(annotations), nil)
					runs(t, c, late(inStatus("things")), nil)
				}
				if len(diary.all()) != calls || patches(c) != writes {
					t.Errorf("restarts wrote %d times; calls %q", patches(c)-writes, diary.all()[calls:])
				}
				guarded := func(config func(*gopf.Operator)) *gopf.Operator {
					op := late(config)
					gopf.For[*Example](op, resource).OnDelete("delete", diary.handler("delete"))
					return op
				}
				runs(t, c, guarded(annotations), nil) // it adds the finalizer
				if len(diary.all()) != calls || patches(c) != writes+2 {
					t.Errorf("the move took %d writes, want 2; calls %q", patches(c)-writes, diary.all()[calls:])
				}
				x = get(t, c, "x")
				for key := range x.GetAnnotations() {
					if key != annotated && key != "kopf.zalando.org/gopf.bound" {
						t.Errorf("the annotation %s is left", key)
					}
				}
				if _, there, _ := unstructured.NestedMap(x.Object, "status", "things"); there {
					t.Errorf("state is left in the status: %v", x.Object["status"])
				}
				writes = patches(c)
				runs(t, c, guarded(annotations), nil)
				runs(t, c, guarded(inStatus("things")), nil)
				if patches(c) != writes {
					t.Errorf("restarts after the move wrote %d times", patches(c)-writes)
				}
			})
		})
	}
}

// The annotations win here, because another operator has handled a change since the move.
// What the status had before is then obsolete.
func TestRecordsFromBeforeTheWorkOfAnotherOperatorDoNotReturn(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := func(config func(*gopf.Operator)) *gopf.Operator {
			op := gopf.New()
			config(op)
			x := gopf.For[*Example](op, resource)
			x.OnUpdate("first", diary.handler("first"))
			x.OnUpdate("second", func(ctx context.Context, ch *gopf.Change[*Example]) error {
				ch.Sub("sub", diary.handler("sub"))
				if err := ch.RunSubs(ctx); err != nil || ch.Object.Spec.Field != "b" {
					return err
				}
				return gopf.Wait(time.Hour, "never done with b")
			})
			return op
		}
		runs(t, c, op(func(*gopf.Operator) {}), func() { c.Create(t, example("x", "a")) })
		runs(t, c, op(inStatus("things")), func() { changeField(t, c, "x", "b") })
		if _, there, _ := unstructured.NestedMap(get(t, c, "x").Object, "status", "things", "progress", "second/sub"); !there {
			t.Fatalf("got %v", get(t, c, "x").Object)
		}
		c.Patch(t, resource, "default", "x", map[string]any{ // Kopf handles another change
			"metadata": map[string]any{"annotations": map[string]any{annotated: `{"spec":{"field":"c"}}` + "\n"}}, "spec": map[string]any{"field": "c"},
		})
		before := len(diary.all())
		runs(t, c, op(inStatus("things")), func() { changeField(t, c, "x", "d") })
		if got, want := diary.all()[before:], []string{"first update d", "sub update d"}; !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		if _, there, _ := unstructured.NestedMap(get(t, c, "x").Object, "status", "things", "progress", "second/sub"); there {
			t.Errorf("got %v", get(t, c, "x").Object)
		}
	})
}

// The base of the handling is the one that an earlier move left in the annotations.
func TestAChangeBackToTheBaseInTheAnnotationsIsHandledOnceByTheMove(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		annotations := func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }
		runs(t, c, plainOperator(&diary, annotations), func() { c.Create(t, example("x", "a")) })
		runs(t, c, plainOperator(&diary, inStatus("things")), func() { changeField(t, c, "x", "b") })
		runs(t, c, plainOperator(&diary, annotations), func() { changeField(t, c, "x", "a") })
		runs(t, c, plainOperator(&diary, annotations), func() { changeField(t, c, "x", "c") })
		if want := []string{"create a", "update a->b", "update b->a", "update a->c"}; !slices.Equal(diary.all(), want) {
			t.Errorf("calls %q, want %q", diary.all(), want)
		}
	})
}

// A process with its state in the status stores changes there before it sends them.
func TestUnsentChangesInTheStatusAreSentAfterARestartWithStateInAnnotations(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := func(config func(*gopf.Operator)) *gopf.Operator {
			op := gopf.New()
			config(op)
			gopf.For[*Example](op, resource).OnCreate("create", func(_ context.Context, ch *gopf.Change[*Example]) error {
				diary.add("create")
				ch.Patch.Label("made", "yes")
				return nil
			})
			return op
		}
		f := c.Fault(gopftest.Requests("patch", "kopfexamples").Where(func(r gopftest.Request) bool { return r.Subresource == "" }), gopftest.Fail(500))
		runs(t, c, op(inStatus("things")), func() { c.Create(t, example("x", "a")) })
		f.Stop()
		var log lines
		runs(t, c, op(func(op *gopf.Operator) { op.Settings.Persistence.FormerStatusKeys = []string{"things"} }), nil, gopf.Log(log.logger()))
		x := get(t, c, "x")
		if want := []string{"create"}; !slices.Equal(diary.all(), want) || x.GetLabels()["made"] != "yes" || log.has("unsent changes") {
			t.Errorf("calls %q, want %q; %v", diary.all(), want, x.Object)
		}
		if _, there, _ := unstructured.NestedMap(x.Object, "status", "things"); there || x.GetAnnotations()[annotated] == "" {
			t.Errorf("the state was not moved: %v", x.Object)
		}
	})
}
