package handling_test

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestADeletionWaitsForDaemonsAndThenGoesThrough(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	release := make(chan struct{})
	op := newOperator()
	gopf.For[*Example](op, examples).Daemon("ping", func(ctx context.Context, dm *gopf.Daemon[*Example]) error {
		d.Add("start")
		dm.Patch.MergeStatus(map[string]string{"phase": "pinging"})
		if err := dm.Flush(ctx); err != nil {
			return err
		}
		<-ctx.Done()
		d.Add("stop: %v", context.Cause(ctx))
		<-release
		return nil
	})
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if phase, _, _ := unstructured.NestedString(obj.Object, "status", "phase"); phase != "pinging" || len(obj.GetFinalizers()) != 1 {
			return fmt.Errorf("the phase is %v, the finalizers %q", phase, obj.GetFinalizers())
		}
		return nil
	})
	s.Delete(examples, "x")
	d.WaitFor(t, "stop: the object is being deleted")
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error { // it is still there
		if obj.GetDeletionTimestamp() == nil {
			return fmt.Errorf("it is not being deleted")
		}
		return nil
	})
	close(release)
	s.waitGone(examples, "x")
	d.Check(t, "start", "stop: the object is being deleted")
}

func TestADaemonThatIgnoresItsContextIsAbandonedAndTheObjectReleased(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	release := make(chan struct{})
	defer close(release)
	op := newOperator()
	gopf.For[*Example](op, examples).Daemon("deaf", func(context.Context, *gopf.Daemon[*Example]) error {
		d.Add("begun")
		<-release
		return nil
	}, gopf.StopTimeout(500*time.Millisecond))
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if len(obj.GetFinalizers()) == 0 {
			return fmt.Errorf("no finalizer yet")
		}
		return nil
	})
	d.WaitFor(t, "begun") // one that has not begun ends at once
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	if len(o.Log.With("Daemon 'deaf' did not exit in time. Leaving it orphaned.")) != 1 {
		t.Error("the leak is not reported")
	}
}

func TestIdleTimersAreResetByEssentialChangesOnly(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnUpdate("update_fn", d.handler("update"))
	x.Timer("idle", 0, func(_ context.Context, tick *gopf.Tick[*Example]) error {
		d.Add("idle %s", tick.Object.Spec.Field)
		return nil
	}, gopf.Idle(2*time.Second))
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	stop := time.After(3 * time.Second)
	for done := false; !done; { // changes of the status do not count
		select {
		case <-stop:
			done = true
		case <-time.After(500 * time.Millisecond):
			s.Patch(examples, "x", fields{"status": fields{"now": time.Now().String()}}, "status")
		}
	}
	d.WaitFor(t, "idle a")
	s.Patch(examples, "x", spec("b"))
	d.WaitFor(t, "idle b")
	d.Check(t, "idle a", "update update b", "idle b")
}

func TestIndicesAreCompleteBeforeTheFirstHandlerAndFollowTheirObjects(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	const n = 20
	for i := range n {
		s.Create(examples, fmt.Sprintf("x%02d", i), spec("a"))
	}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	index := gopf.Index(x, "by-field", func(_ context.Context, sub *gopf.Subject[*Example]) (map[string]string, error) {
		return map[string]string{sub.Object.Spec.Field: sub.Object.Name}, nil
	})
	x.OnCreate("create_fn", func(context.Context, *gopf.Change[*Example]) error {
		d.Add("%d", index.Count("a"))
		return nil
	})
	s.start(op, nil)
	kit.Eventually(t, func() error {
		if got := len(d.All()); got != n {
			return fmt.Errorf("%d of %d are handled", got, n)
		}
		return nil
	})
	for _, seen := range d.All() {
		if seen != fmt.Sprint(n) {
			t.Errorf("a handler saw an index of %s objects, want %d", seen, n)
		}
	}
	s.Delete(examples, "x00")
	s.Patch(examples, "x01", spec("b"))
	kit.Eventually(t, func() error {
		if got := slices.Collect(index.Get("b")); index.Count("a") != n-2 || !slices.Equal(got, []string{"x01"}) {
			return fmt.Errorf("the index has %d of a, and %q of b", index.Count("a"), got)
		}
		return nil
	})
}
