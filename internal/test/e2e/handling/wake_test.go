package handling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestADelayedHandlerIsWokenByName(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	for _, id := range []string{"woken", "other"} {
		x.OnCreate(id, func(_ context.Context, c *gopf.Change[*Example]) error {
			d.Add("%s #%d", id, c.Retry)
			if c.Retry == 0 {
				return gopf.Wait(time.Hour, "it is not there yet")
			}
			return nil
		})
	}
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	kit.Eventually(t, func() error {
		if r, _ := s.record("other"); r.Retries != 1 {
			return errors.New("the handlers are not waiting yet")
		}
		return nil
	})
	o.settles(t, d)
	x.Wake(s.Name, "x", "woken")
	x.Wake(s.Name, "nobody")
	d.WaitFor(t, "woken #1")
	o.settles(t, d)
	d.Check(t, "woken #0", "other #0", "woken #1")
	x.Wake(s.Name, "x")
	s.waitHandled(examples, "x", "a")
	d.Check(t, "woken #0", "other #0", "woken #1", "other #1")
	x.Wake(s.Name, "x") // there is nothing to wake any more
	o.staysQuiet(t, d)
}

func TestAParentIsWokenByItsChildren(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	parents := gopf.For[*Example](op, examples)
	parents.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
		child := s.Get("v1/configmaps", "child")
		if child == nil {
			return gopf.Wait(time.Hour, "there is no child")
		}
		if ready := child.GetLabels()["ready"]; ready != "yes" {
			return gopf.Wait(time.Hour, "the child is not ready")
		}
		c.SetResult("ready")
		return nil
	})
	gopf.WakeOwner(gopf.For[*corev1.ConfigMap](op, "v1/configmaps"), parents)
	o := s.start(op, nil).following("configmaps", "examples")
	parent := s.Create(examples, "x", spec("a"))
	waiting := func(retries int) {
		t.Helper()
		kit.Eventually(t, func() error {
			if r, _ := s.record("create_fn"); r.Retries != retries {
				return fmt.Errorf("%d attempts, want %d", r.Retries, retries)
			}
			return nil
		})
	}
	waiting(1)
	controller := true
	owner := metav1.OwnerReference{APIVersion: parent.GetAPIVersion(), Kind: parent.GetKind(), Name: "x", UID: parent.GetUID(), Controller: &controller}
	s.Create("v1/configmaps", "stranger", fields{})
	s.Create("v1/configmaps", "child", fields{"metadata": fields{"ownerReferences": []any{toFields(owner)}}})
	waiting(2)
	s.Patch("v1/configmaps", "child", fields{"metadata": fields{"labels": fields{"ready": "yes"}}})
	checkStatus(t, s.waitHandled(examples, "x", "a"), fields{"create_fn": "ready"})
	o.staysQuiet(t, d)
	d.Check(t, "create #0", "create #1", "create #2")
	if child := s.Get("v1/configmaps", "child"); len(child.GetAnnotations()) > 0 || len(child.GetFinalizers()) > 0 {
		t.Errorf("the child has traces: %v", child.Object["metadata"])
	}
}

// Somebody may ask for a delayed handler while the echo of the operator's own
// write is still on its way.
func TestAHandlerCanBeWokenAsSoonAsItWaits(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
		if c.Retry == 0 {
			return gopf.Wait(time.Hour, "it is not there yet")
		}
		return nil
	})
	o := s.start(op, nil)
	o.wire.whenAnswered(func(write) { x.Wake(s.Name, "x") })
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #1")
	s.waitHandled(examples, "x", "a")
	d.Check(t, "create #0", "create #1")
}

// Somebody may ask for a delayed handler while the object pauses after an error.
func TestAHandlerCanBeWokenWhileItsObjectPausesAfterAnError(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Networking.ErrorDelays = nil
	op.Settings.Queueing.ErrorDelays = []time.Duration{2 * time.Second}
	x := gopf.For[*Example](op, examples)
	x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
		if e.Object.Status["phase"] != nil {
			e.Patch.Label("seen", "yes")
		}
		return nil
	})
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create #%d", c.Retry)
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
		time.AfterFunc(500*time.Millisecond, func() { x.Wake(s.Name, "x") })
		return refused
	})
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create #0")
	o.settles(t, d)
	s.Patch(examples, "x", fields{"status": fields{"phase": "Ready"}}, "status")
	d.WaitFor(t, "create #1")
}
