package handling_test

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/storage"
)

func TestResultsThatTheSchemaDropsAreReportedAndNothingElse(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	declare := func() *gopf.Operator {
		op := newOperator()
		x := gopf.For[*Example](op, pruneds)
		for reason, id := range map[gopf.Reason]string{gopf.Create: "create_fn", gopf.Update: "update_fn"} {
			x.On(reason, id, func(ctx context.Context, c *gopf.Change[*Example]) error {
				c.Patch.MergeStatus(map[string]string{"kept": c.Object.Spec.Field})
				return result(d, "call")(ctx, c)
			})
		}
		return op
	}
	o := s.start(declare(), nil)
	s.Create(pruneds, "x", spec("a"))
	checkStatus(t, s.waitHandled(pruneds, "x", "a"), fields{"kept": "a"})
	s.Patch(pruneds, "x", spec("b"))
	checkStatus(t, s.waitHandled(pruneds, "x", "b"), fields{"kept": "b"})
	o.staysQuiet(t, d)
	o.wire.checkWrites(t, 0, "PATCH pruneds/x/status", "PATCH pruneds/x", "PATCH pruneds/x/status", "PATCH pruneds/x")
	warnings := o.Log.With("Merge-patching finished with inconsistencies")
	if len(warnings) != 2 || !strings.Contains(warnings[0], "status.create_fn") || !strings.Contains(warnings[1], "status.update_fn") ||
		strings.Contains(warnings[0], "kept") {
		t.Errorf("warnings: %q, want one for each result, naming the fields that are missing", warnings)
	}
	o.Stop()
	again := s.start(declare(), nil).following("pruneds")
	again.staysQuiet(t, d)
	d.Check(t, "call create a", "call update b")
}

func TestProgressThatTheSchemaDropsDoesNotMakeTheOperatorSpin(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Persistence.Progress = storage.NewStatusProgress("kopf")
	x := gopf.For[*Example](op, pruneds)
	x.OnCreate("first", d.handler("first"))
	x.OnCreate("second", d.handler("second"))
	x.OnUpdate("update_fn", d.handler("update"))
	o := s.start(op, nil)
	s.Create(pruneds, "x", spec("a"))
	d.WaitFor(t, "first create a")
	// Pauses are 0.1, 0.2, 0.5 and then 1 s.
	stays(t, 4*time.Second, func() error {
		if calls, writes := len(d.All()), len(o.wire.all()); calls > 9 || writes > 9 {
			return fmt.Errorf("%d calls, %d writes", calls, writes)
		}
		return nil
	})
	o.Log.WaitFor(t, "Merge-patching finished with inconsistencies")
	t.Logf("calls in 4 s: %q", d.All())
}

func TestABaseThatTheSchemaDropsDoesNotMakeTheOperatorSpin(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Persistence.Base = storage.NewStatusBase("kopf")
	n := 0
	gopf.For[*Example](op, pruneds).OnCreate("create_fn", func(ctx context.Context, c *gopf.Change[*Example]) error {
		n++
		c.Patch.MergeStatus(map[string]string{"kept": fmt.Sprint(n)}) // so that something is written each time
		return d.handler("create")(ctx, c)
	})
	o := s.start(op, nil)
	s.Create(pruneds, "x", spec("a"))
	d.WaitFor(t, "create create a")
	stays(t, 4*time.Second, func() error {
		if calls, writes := len(d.All()), len(o.wire.all()); calls > 9 || writes > 9 {
			return fmt.Errorf("%d calls, %d writes", calls, writes)
		}
		return nil
	})
	o.Log.WaitFor(t, "The state that the operator had stored on the object is gone")
	t.Logf("%d calls in 4 s", len(d.All()))
}
