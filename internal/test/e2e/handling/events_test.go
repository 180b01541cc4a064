package handling_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func toFields(v any) (of fields) {
	if err := json.Unmarshal([]byte(toJSON(v)), &of); err != nil {
		panic(err)
	}
	return of
}

func TestEventHandlersSeeEverythingThatHappens(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		switch {
		case e.Object.Name != "x":
			d.Add("%s %s", e.Type, e.Object.Name)
		case e.Object.Annotations[lastHandled] != "":
			d.Add("%s %s by ourselves, finalizers %d", e.Type, e.Object.Spec.Field, len(e.Object.Finalizers))
		default:
			d.Add("%s %s, finalizers %d", e.Type, e.Object.Spec.Field, len(e.Object.Finalizers))
		}
		return errors.New("that nobody minds")
	})
	x.WithLabel("handled", gopf.Present).OnDelete("delete_fn", d.handler("delete"))
	s.Create(examples, "before", spec("a"))
	o := s.start(op, nil)
	d.WaitFor(t, " before") // in a listing
	s.Create(examples, "x", fields{"metadata": fields{"labels": fields{"handled": "yes"}}, "spec": fields{"field": "a"}})
	d.WaitFor(t, "MODIFIED a by ourselves, finalizers 1")
	s.Patch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status")
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	kit.Eventually(t, func() error {
		if got := d.All(); !slices.ContainsFunc(got, func(line string) bool { return line[:4] == "DELE" }) {
			return errors.New("the deletion was not seen")
		}
		return nil
	})
	o.staysQuiet(t, d)
	got := slices.DeleteFunc(d.All(), func(line string) bool { return line == "delete delete a" })
	want := []string{
		" before", "ADDED a, finalizers 0", "MODIFIED a, finalizers 1", "MODIFIED a by ourselves, finalizers 1",
		"MODIFIED a by ourselves, finalizers 1", // the status
		"MODIFIED a by ourselves, finalizers 1", // being deleted
		"DELETED a by ourselves, finalizers 1",  // as it was before the last one was removed
	}
	if !slices.Equal(got, want) {
		t.Errorf("events:\ngot  %q\nwant %q", got, want)
	}
}

func TestWhatAnEventHandlerAsksForIsWritten(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	gopf.For[*Example](op, examples).OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		e.Patch.Label("seen", e.Object.Spec.Field)
		e.SetResult(map[string]string{"field": e.Object.Spec.Field})
		return nil
	})
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	for _, field := range []string{"a", "b"} {
		if field == "b" {
			s.Patch(examples, "x", spec("b"))
		}
		kit.Eventually(t, func() error {
			if got := s.Get(examples, "x"); got.GetLabels()["seen"] != field || toJSON(got.Object["status"]) != `{"event_fn":{"field":"`+field+`"}}` {
				return errors.New("it is not written: " + toJSON(got.Object))
			}
			return nil
		})
	}
	o.settles(t, d) // its own changes are events, too, but lead to nothing new
	if got := s.Get(examples, "x").GetAnnotations(); len(got) > 0 {
		t.Errorf("annotations: %q, want none without handlers of changes", got)
	}
}

func TestAChangeIsNotMissedBecauseAnEventHandlerWrites(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		if e.Object.Annotations[lastHandled] != "" && e.Object.Labels["seen"] == "" {
			e.Patch.Label("seen", "yes")
		}
		return nil
	})
	x.OnUpdate("update_fn", d.handler("update"))
	s.start(op, func(_ int, w write) mishap {
		if strings.Contains(w.body, `"seen":"yes"`) {
			if err := s.TryPatch(examples, "x", spec("b")); err != nil {
				t.Error(err)
			}
		}
		return ""
	})
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "update update b")
}

// The alarm of a delayed handler may come while echoes of the operator's own
// writes are waiting for a slow event handler.
func TestADelayedHandlerIsNotForgottenWhileEventHandlersAreBusy(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(context.Context, *gopf.WatchEvent[*Example]) error {
		time.Sleep(time.Second) // it is slow
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
		if c.Retry == 0 {
			c.Patch.MergeStatus(map[string]string{"phase": "waiting"}) // so that there are two echoes
			return gopf.Wait(700*time.Millisecond, "it is not there yet")
		}
		return nil
	})
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #1")
}

// What event handlers ask for on an echo of the operator's own writes has
// nothing to do with what else is to be done later.
func TestADelayedHandlerIsNotForgottenWhenAnEventHandlerWrites(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		e.Patch.Label("seen", "yes")
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Second, "it is not there yet")
		}
		return nil
	})
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #1")
}

// What event handlers ask for while the object pauses after an error is to be
// written after the pause.
func TestWhatEventHandlersAskForSurvivesErrors(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	op.Settings.Networking.ErrorDelays = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{time.Second}
	x := gopf.For[*Example](op, examples)
	var once sync.Once
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		if phase, ok := e.Object.Status["phase"].(string); ok {
			once.Do(func() { e.Patch.Label("phase", phase) })
		}
		return nil
	})
	x.OnCreate("create_fn", (&diary{}).handler("create"))
	s.start(op, func(n int, _ write) mishap {
		if n > 1 {
			return ""
		}
		go func() { // while it pauses
			time.Sleep(300 * time.Millisecond)
			if err := s.TryPatch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status"); err != nil {
				t.Error(err)
			}
		}()
		return refused
	})
	s.Create(examples, "x", spec("a"))
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if obj.GetLabels()["phase"] != "Ready" {
			return fmt.Errorf("labels: %q", obj.GetLabels())
		}
		return nil
	})
}
