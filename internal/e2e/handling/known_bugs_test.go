package handling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// Somebody may ask for a delayed handler while the object pauses after an error.
func TestAHandlerCanBeWokenWhileItsObjectPausesAfterAnError(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Networking.ErrorBackoffs = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{2 * time.Second}
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.Event[*Example]) error {
		if e.Object.Status["phase"] != nil {
			e.Patch.Label("seen", "yes")
		}
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Hour, "it is not there yet")
		}
		return nil
	})
	struck := false
	o := s.start(op, func(_ int, w write) mishap {
		if struck || !strings.Contains(w.body, "seen") {
			return ""
		}
		struck = true
		time.AfterFunc(500*time.Millisecond, func() { x.Wake(s.name, "x") })
		return refused
	})
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create #0")
	o.staysQuiet(t, d)
	s.patch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status")
	d.waitFor(t, "create #1")
}

// The news that the object is being deleted may come while no pause is made, or
// together with the end of one.
func TestARefusedChangeIsGivenUpAlsoWhenTheNewsComesOutsideOfAPause(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Queueing.ErrorDelays = []time.Duration{time.Nanosecond}
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Label("what?", "no!")
		return d.handler("create")(ctx, c)
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	s.start(op, nil)
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create create a")
	s.delete(examples, "x")
	s.waitGone(examples, "x")
}

// An empty object is a value: it may be what switches something on.
func TestEmptyObjectsAreWritten(t *testing.T) {
	t.Parallel()
	for _, reason := range []gopf.Reason{gopf.Create, gopf.Delete} {
		t.Run(reason.String(), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			op := newOperator()
			gopf.For[*Example](op, examples).On(reason, "fn", func(_ context.Context, c *gopf.Change[*Example]) error {
				c.Patch.Set("spec.emptyDir", map[string]any{})
				c.SetResult(map[string]any{})
				return nil
			})
			s.start(op, nil)
			obj := finalizers(others...) // so that it can be looked at afterwards
			obj["spec"] = fields{"field": "a"}
			s.create(examples, "x", obj)
			if reason == gopf.Delete {
				s.waitHandled(examples, "x", "a")
				s.delete(examples, "x")
			}
			s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
				if got := toJSON(obj.Object["spec"]) + toJSON(obj.Object["status"]); got != `{"emptyDir":{},"field":"a"}{"fn":{}}` {
					return fmt.Errorf("spec and status: %s", got)
				}
				return nil
			})
		})
	}
}
