package engine_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

// The field changes from A to B and back to A. One handler finishes with A, the other
// with B. Only the latter must be called again.
func TestAChangeBackIsHandledByTheHandlerThatRanInBetween(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "quick", diary.handler("quick"))
		x.On(gopf.Create|gopf.Update, "slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
			diary.add("slow %s %s", ch.Reason, ch.Object.Spec.Field)
			if ch.Retry == 0 {
				return gopf.RetryAfter(time.Minute, errors.New("later"))
			}
			time.Sleep(10 * time.Second)
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "A"))
		time.Sleep(30 * time.Second) // the quick handler has seen A
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "B"}))
		time.Sleep(35 * time.Second) // the slow handler is working on B
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "A"}))
		time.Sleep(time.Hour)
		var slow []string
		for _, line := range diary.all() {
			if strings.HasPrefix(line, "slow") {
				slow = append(slow, line)
			}
		}
		if last := slow[len(slow)-1]; !strings.HasSuffix(last, " A") {
			t.Errorf("slow saw the field last as B, but it is A: %q", diary.all())
		}
	})
}

// The handlers are for fields, so the selected handlers change while the handling runs.
func TestAFieldChangedBackIsHandledByTheHandlerThatSawIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[gopf.Unstructured](op, resource)
		note := func(name, field string) gopf.ChangeFunc[gopf.Unstructured] {
			return func(_ context.Context, ch *gopf.Change[gopf.Unstructured]) error {
				v := ch.Object.Object["spec"].(map[string]any)[field]
				diary.add("%s %v", name, v)
				return nil
			}
		}
		busy := func(_ context.Context, ch *gopf.Change[gopf.Unstructured]) error {
			if ch.Retry < 10 {
				return gopf.RetryAfter(time.Minute, errors.New("later"))
			}
			return nil
		}
		x.Field("spec.a").OnUpdate("a1", note("a1", "a"))
		x.Field("spec.a").OnUpdate("a2", busy)
		x.Field("spec.b").OnUpdate("b", busy)
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		obj := example("x", "-")
		obj.Object["spec"] = map[string]any{"a": "old", "b": "old"}
		c.Create(t, obj)
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"a": "new"}))
		time.Sleep(90 * time.Second) // a1 has seen it
		c.Patch(t, resource, "default", "x", spec(map[string]any{"b": "new"}))
		time.Sleep(90 * time.Second)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"a": "old"}))
		time.Sleep(time.Hour)
		got := diary.all()
		if len(got) == 0 || got[len(got)-1] != "a1 old" {
			t.Errorf("a1 saw %q; the last state is a=old", got)
		}
		t.Log(get(t, c, "x").GetAnnotations())
	})
}

// A handler stops matching before it has finished. When it matches again, with a state
// that other handlers have already seen, it must be called.
func TestAHandlerThatMatchesAgainIsCalled(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.On(gopf.Create|gopf.Update, "first", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Reason == gopf.Update && ch.Retry == 0 {
				return gopf.RetryAfter(time.Minute, errors.New("later"))
			}
			return nil
		})
		x.When(func(s *gopf.Candidate[*Example]) bool { return s.Object.Spec.Field != "B" }).
			On(gopf.Create|gopf.Update, "picky", func(_ context.Context, ch *gopf.Change[*Example]) error {
				if ch.Reason == gopf.Create || ch.Object.Spec.Field == "C" {
					return gopf.RetryAfter(time.Minute, errors.New("later"))
				}
				diary.add("picky %s", ch.Object.Spec.Field)
				return nil
			})
		x.On(gopf.Create|gopf.Update, "slow", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Retry == 0 {
				return gopf.RetryAfter(10*time.Second, errors.New("later"))
			}
			return nil
		})
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		c.Create(t, example("x", "A"))
		time.Sleep(5 * time.Second)
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "B"}))
		time.Sleep(6 * time.Second) // the creation is complete without the picky handler
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "C"}))
		time.Sleep(5 * time.Second) // now the picky handler is called, and does not finish
		c.Patch(t, resource, "default", "x", spec(map[string]any{"field": "A"}))
		time.Sleep(time.Hour)
		if got := diary.all(); !slices.Contains(got, "picky A") {
			t.Errorf("the handler that matches again was not called: %q", got)
		}
	})
}

func TestARenamedHandlerSeesAChangeThatItMissed(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		operator := func(id string, opts ...gopf.ChangeOption) *gopf.Operator {
			op := gopf.New()
			x := gopf.For[*Example](op, resource)
			x.On(gopf.Create|gopf.Update, id, diary.failing(id, 1, time.Minute), opts...)
			x.OnCreate("slow", diary.failing("slow", 2, time.Minute))
			return op
		}
		stop := gopftest.Start(t, operator("old"), c)
		c.Create(t, example("x", "a"))
		time.Sleep(30 * time.Second)
		stop()
		gopftest.Start(t, operator("new", gopf.Formerly("old")), c)
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		time.Sleep(time.Hour)
		synctest.Wait()
		want := []string{
			"old create a #0", "slow create a #0", "new create a #1", "slow create a #1", "slow create b #2", "new update b #0", "new update b #1",
		}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("got %q, want %q", got, want)
		}
	})
}

func TestAFieldHandlerSeesTheRemovalOfItsFieldAlthoughNoHandlerMatchesWithoutIt(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		x := gopf.For[*Example](op, resource)
		x.Field("spec.field").On(gopf.Create|gopf.Update, "field", diary.handler("field"))
		x.WithLabel("tier", gopf.Is("gold")).OnUpdate("slow", diary.failing("slow", 100, time.Hour))
		gopftest.Start(t, op, c, gopf.Log(quiet()))
		settle()
		obj := example("x", "a")
		obj.Object["spec"] = map[string]any{"other": "a"}
		obj.SetLabels(map[string]string{"tier": "gold"})
		c.Create(t, obj)
		time.Sleep(time.Minute)
		changeField(t, c, "x", "b")
		time.Sleep(time.Minute)
		c.Patch(t, resource, "default", "x", map[string]any{
			"metadata": map[string]any{"labels": map[string]any{"tier": nil}}, "spec": map[string]any{"field": nil},
		})
		time.Sleep(24 * time.Hour)
		synctest.Wait()
		want := []string{"field update b", "slow update b #0", "field update "}
		if got := diary.all(); !slices.Equal(got, want) {
			t.Errorf("calls %q, want %q", got, want)
		}
		for key := range get(t, c, "x").GetAnnotations() {
			if key != annotated && key != "kopf.zalando.org/gopf.bound" {
				t.Errorf("the annotation %s is left", key)
			}
		}
	})
}
