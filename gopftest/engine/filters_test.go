package engine_test

import (
	"context"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"gopf.dev/gopf"
	"gopf.dev/gopf/gopftest"
)

func TestWhenSeesTheReasonAndTheChange(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var seen, diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).When(func(c *gopf.Candidate[*Example]) bool {
			if c.Reason != 0 {
				old, _ := gopf.OldValueAt[string](c, "spec.field")
				seen.add("%s %s>%s %s %d", c.Reason, c.Old().Spec.Field, c.Object.Spec.Field, old, len(c.Diff()))
			}
			return c.Reason != gopf.Update || c.Old().Spec.Field < c.Object.Spec.Field
		}).On(gopf.Create|gopf.Update|gopf.Delete, "grow", diary.handler("grow"))
		stop := gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		defer stop()
		c.Create(t, example("x", "b"))
		settle()
		for _, field := range []string{"c", "a", "d"} {
			c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
			settle()
		}
		c.Delete(t, resource, "default", "x")
		settle()
		if diff := cmp.Diff([]string{"grow create b", "grow update c", "grow update d", "grow delete d"}, diary.all()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		for _, wanted := range []string{"create >b  1", "update b>c b 1", "update c>a c 1", "delete d>d d 0"} {
			if !strings.Contains(strings.Join(seen.all(), "\n")+"\n", wanted+"\n") {
				t.Errorf("When has not seen %q, only %q", wanted, seen.all())
			}
		}
	})
}

func TestWhenSeesTheWatchEvent(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		gopf.For[*Example](op, resource).When(func(c *gopf.Candidate[*Example]) bool {
			return c.Event == "DELETED" && c.Reason == 0 && c.Operation == "" && len(c.Diff()) == 0 && c.Old().Name == ""
		}).OnEvent("gone", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
			diary.add("%s", e.Type)
			return nil
		})
		stop := gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		defer stop()
		c.Create(t, example("x", "a"))
		settle()
		c.Delete(t, resource, "default", "x")
		settle()
		if diff := cmp.Diff([]string{"DELETED"}, diary.all()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestWhenSeesTheAdmissionRequest(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var seen calls
		op := gopf.New()
		gopf.For[*Example](op, resource).When(func(c *gopf.Candidate[*Example]) bool {
			seen.add("%s by %s: %s>%s %v", c.Operation, c.User.Username, c.Old().Spec.Field, c.Object.Spec.Field, len(c.Diff()) > 0)
			return c.Operation == admissionv1.Update
		}).Validate("no", func(context.Context, *gopf.Review[*Example]) error { return gopf.Deny("never") })
		stop := gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		defer stop()
		settle()
		c.Create(t, example("x", "a"))
		all, err := dynamic.NewForConfig(c.RESTConfig())
		if err != nil {
			t.Fatal(err)
		}
		examples := all.Resource(schema.GroupVersionResource{Group: "kopf.dev", Version: "v1", Resource: "kopfexamples"}).Namespace("default")
		if _, err := examples.Patch(t.Context(), "x", types.MergePatchType, []byte(`{"spec":{"field":"b"}}`), metav1.PatchOptions{}); err == nil || !strings.Contains(err.Error(), "never") {
			t.Errorf("got %v", err)
		}
		for i, wanted := range []string{"CREATE by ", "UPDATE by "} {
			if all := seen.all(); len(all) <= i || !strings.HasPrefix(all[i], wanted) || i == 1 && !strings.HasSuffix(all[i], ": a>b true") {
				t.Errorf("When has seen %q", all)
			}
		}
	})
}

func TestSubHandlersAreFiltered(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		op := gopf.New()
		examples := gopf.For[*Example](op, resource)
		examples.On(gopf.Create|gopf.Update, "parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
			if ch.Retry == 0 {
				diary.add("parent %s", ch.Reason)
			}
			ch.Sub("labeled", diary.handler("labeled"), ch.Filter().WithLabel("app", gopf.Is("y")))
			ch.Sub("field", diary.handler("field"), ch.Filter().Field("spec.field"))
			ch.Sub("updated", diary.handler("updated"), ch.Filter().When(func(c *gopf.Candidate[*Example]) bool { return c.Reason == gopf.Update }))
			ch.Sub("to-b", diary.handler("to-b"), examples.Field("spec.field").Changed(gopf.Any, gopf.Is("b")))
			return nil
		})
		stop := gopftest.Start(t, op, c, gopf.Log(testLog(t)))
		defer stop()
		c.Create(t, example("x", "a"))
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"metadata": map[string]any{"labels": map[string]any{"app": "y"}}})
		settle()
		c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": "b"}})
		settle()
		want := []string{
			"parent create", "field create a",
			"parent update", "labeled update a", "updated update a",
			"parent update", "labeled update b", "field update b", "updated update b", "to-b update b",
		}
		if diff := cmp.Diff(want, diary.all()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
	})
}

func TestMistakesInSubHandlersFailTheirParent(t *testing.T) {
	pods := gopf.New()
	others := gopf.For[*Example](pods, "example.com/v1/others")
	nothing := func(context.Context, *gopf.Change[*Example]) error { return nil }
	for says, declare := range map[string]func(*gopf.Change[*Example]){
		"Optional does not apply to sub-handlers":     func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, gopf.Optional()) },
		"AlsoDeleted does not apply to sub-handlers":  func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, gopf.AlsoDeleted()) },
		"its filters are for example.com/v1/others":   func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, others) },
		"Select does not apply to sub-handlers":       func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, ch.Filter().Select("a=b")) },
		"a filter has no condition":                   func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, ch.Filter().WithLabel("a", gopf.Matcher{})) },
		"filters of two handles":                      func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing, ch.Filter(), ch.Filter()) },
		"declared on the filters of a sub-handler":    func(ch *gopf.Change[*Example]) { ch.Filter().OnCreate("a", nothing) },
		`is declared twice: both would share one rec`: func(ch *gopf.Change[*Example]) { ch.Sub("a", nothing); ch.Sub("a", nothing) },
		// The ids may come from the object, which may have very many.
		`"parent": it is declared twice`: func(ch *gopf.Change[*Example]) {
			for range 200_000 {
				ch.Sub("a", nothing)
			}
		},
		"more than 2000 sub-handlers": func(ch *gopf.Change[*Example]) {
			for i := range 200_000 {
				ch.Sub(strconv.Itoa(i), nothing)
			}
		},
	} {
		t.Run(says, func(t *testing.T) {
			bubble(t, func(t *testing.T, c *gopftest.Cluster) {
				calls := 0
				op := gopf.New()
				gopf.For[*Example](op, resource).OnCreate("parent", func(_ context.Context, ch *gopf.Change[*Example]) error {
					calls++
					declare(ch)
					return nil
				})
				log := &lines{}
				stop := gopftest.Start(t, op, c, gopf.Log(log.logger()))
				defer stop()
				c.Create(t, example("x", "a"))
				time.Sleep(time.Hour)
				if calls != 1 || !log.has("parent", "failed permanently", says) {
					t.Errorf("called %d times, logged %q", calls, log.text)
				}
			})
		})
	}
}

func TestHandlesAreOptionsOfSubHandlersOnly(t *testing.T) {
	op := gopf.New()
	examples := gopf.For[*Example](op, resource)
	examples.OnCreate("a", func(context.Context, *gopf.Change[*Example]) error { return errors.New("unused") }, examples.WithLabel("a", gopf.Present))
	if err := op.Err(); err == nil || !strings.Contains(err.Error(), "declare the handler on that handle") {
		t.Errorf("got %v", err)
	}
}

// The operator removes its finalizer from an object that matches no handler. That is no
// removal by another client: the finalizer returns at once when the object matches again.
func TestAnObjectThatMatchesAgainGetsItsFinalizerAtOnce(t *testing.T) {
	bubble(t, func(t *testing.T, c *gopftest.Cluster) {
		var diary calls
		var log lines
		op := gopf.New()
		gopf.For[*Example](op, resource).WithField("spec.field", gopf.Is("on")).OnDelete("clean", diary.handler("clean"))
		gopftest.Start(t, op, c, gopf.Log(log.logger()))
		c.Create(t, example("x", "on"))
		settle()
		for range 5 {
			for _, field := range []string{"off", "on"} {
				c.Patch(t, resource, "default", "x", map[string]any{"spec": map[string]any{"field": field}})
				settle()
			}
		}
		c.Delete(t, resource, "default", "x")
		settle()
		if diff := cmp.Diff([]string{"clean delete on"}, diary.all()); diff != "" {
			t.Errorf("-want +got\n%s", diff)
		}
		if log.has("The finalizer of the operator is gone") {
			t.Error("the operator blames another client")
		}
	})
}
