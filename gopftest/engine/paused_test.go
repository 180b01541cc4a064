package engine_test

import (
	"bytes"
	"context"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
	"gopf.dev/gopf/internal/insight"
)

// pausedMessage returns the message of the condition Paused; "" means that there is none.
func pausedMessage(o *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, c := range list {
		if m := c.(map[string]any); m["type"] == "Paused" && m["status"] == "True" {
			return m["message"].(string)
		}
	}
	return ""
}

func TestPausedObjectsHaveTheConditionUntilTheyContinue(t *testing.T) {
	owners(t, func(t *testing.T, c *gopftest.Cluster) {
		declare := func() *gopf.Operator {
			op := owning()
			gopf.For[*Example](op, resource).Reconcile("children", func(_ context.Context, r *gopf.Reconciliation[*Example]) error {
				reconciled(r)
				return nil
			}, gopf.Owns[*corev1.ConfigMap]())
			return op
		}
		op := declare()
		stop := gopftest.Start(t, op, c)
		c.Create(t, withItems("x", "a", "one"))
		settle()
		names := insight.Objects{Names: []insight.Name{objectNamed("x")}}
		pausing(t, c, op, insight.Pausing{Objects: names, Reason: "moving the data"})
		settle()
		o := c.Get(t, resource, "default", "x")
		if got := pausedMessage(o); got != "paused by the annotation examples.kopf.dev/pause: moving the data" || readyCondition(o) == nil {
			t.Errorf("got the condition %q in %v", got, o.Object["status"])
		}
		seen := len(c.Writes())
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		if got := changes(c, &seen); len(got) != 0 {
			t.Errorf("the operator wrote during the pause: %q", got)
		}
		pausing(t, c, op, insight.Pausing{Objects: names, Continue: true})
		settle()
		if got := pausedMessage(c.Get(t, resource, "default", "x")); got != "" {
			t.Errorf("after the pause: %q", got)
		}

		pausing(t, c, op, insight.Pausing{Objects: names, Until: time.Now().Add(time.Minute)})
		settle()
		if got := pausedMessage(c.Get(t, resource, "default", "x")); !strings.Contains(got, " until ") {
			t.Errorf("got the condition %q, want its end", got)
		}
		stop()
		time.Sleep(time.Hour) // the pause ends while the operator is down
		gopftest.Start(t, declare(), c)
		settle()
		if got := pausedMessage(c.Get(t, resource, "default", "x")); got != "" {
			t.Errorf("after the restart: %q", got)
		}
	})
}

func TestReleaseDeletesObjectsAndWaitsForTheRunningOperator(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).OnDelete("drop", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if diary.add("drop %s", ch.Object.Name); len(diary.all()) <= 2 {
				return gopf.Wait(5*time.Second, "not yet")
			}
			return nil
		})
		gopftest.Start(t, op, c)
		for _, name := range []string{"a", "b"} {
			c.Create(t, example(name, "x"))
		}
		settle()
		var out bytes.Buffer
		r := insight.Releasing{Kinds: []string{"kopfexamples"}, Delete: true, DryRun: true, Out: &out}
		if err := commands(t, c, op).Release(t.Context(), r); err != nil || !strings.Contains(out.String(), "2 to delete") || len(c.List(t, resource, "default")) != 2 {
			t.Errorf("got %v and %q", err, &out)
		}
		r.DryRun = false
		if err := commands(t, c, op).Release(t.Context(), r); err != nil || !strings.Contains(out.String(), "waiting for the operator: 2 objects left") || !strings.Contains(out.String(), "all objects are gone") {
			t.Errorf("got %v and %q", err, &out)
		}
		if left := c.List(t, resource, "default"); len(left) != 0 || len(diary.all()) != 4 {
			t.Errorf("%d objects are left after the calls %q", len(left), diary.all())
		}
	})
}

// A tenant sets and removes the annotation of the pause as fast as it can.
func TestManyPausesDoNotCallATimerMoreOften(t *testing.T) {
	for name, also := range map[string]func(*gopf.Resource[*Example]){
		"with a change handler":   func(x *gopf.Resource[*Example]) { x.OnUpdate("update", (&calls{}).handler("update")) },
		"without change handlers": func(*gopf.Resource[*Example]) {},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				var diary calls
				op := gopf.New()
				x := gopf.For[*Example](op, resource)
				x.Timer("tick", time.Hour, func(context.Context, *gopf.Tick[*Example]) error {
					diary.add("tick")
					return nil
				})
				also(x)
				gopftest.Start(t, op, c)
				c.Create(t, example("x", "a"))
				settle()
				for range 50 {
					for _, value := range []any{"true", nil} {
						c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"annotations": map[string]any{"gopf.dev/pause": value}}})
						settle()
					}
				}
				if got := diary.all(); len(got) != 1 {
					t.Errorf("%d calls in the first minutes, want 1", len(got))
				}
				time.Sleep(time.Hour)
				settle()
				if got := diary.all(); len(got) != 2 {
					t.Errorf("%d calls after an hour, want 2", len(got))
				}
			})
		})
	}
}

// The operator forgets an object that leaves the selection, even if it is paused and has a
// timer.
func TestAPausedObjectLeavesTheSelection(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).Select("tier=prod").Timer("tick", time.Hour, func(context.Context, *gopf.Tick[*Example]) error {
			diary.add("tick")
			return nil
		}, gopf.Optional())
		gopftest.Start(t, op, c)
		obj := example("x", "a")
		obj.SetLabels(map[string]string{"tier": "prod"})
		c.Create(t, obj)
		settle()
		label := func(metadata map[string]any) {
			c.Patch(t, resource, "default", "x", map[string]any{"metadata": metadata})
			settle()
		}
		label(map[string]any{"annotations": map[string]any{"gopf.dev/pause": "true"}})
		label(map[string]any{"labels": map[string]any{"tier": "dev"}})
		label(map[string]any{"annotations": map[string]any{"gopf.dev/pause": nil}, "labels": map[string]any{"tier": "prod"}})
		if got := diary.all(); len(got) != 2 { // the object is a new one
			t.Errorf("%d calls, want 2", len(got))
		}
	})
}
