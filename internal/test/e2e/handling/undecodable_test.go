package handling_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestAnObjectThatDoesNotDecodeWaitsUntilItDoes(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Execution.DefaultBackoff = time.Hour // so that only a change can help
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", d.handler("create"), gopf.MaxAttempts(1))
	x.OnUpdate("update_fn", d.handler("update"), gopf.MaxAttempts(1))
	x.OnDelete("delete_fn", d.handler("delete"), gopf.MaxAttempts(1))
	o := s.start(op, nil)
	told := map[string]int{} // lines so far
	broken := fields{"spec": fields{"field": 42}}
	reported := func(id string) {
		t.Helper()
		kit.Eventually(t, func() error {
			lines := o.Log.With("Handler '" + id + "' is not called")[told[id]:]
			if len(lines) == 0 {
				return errors.New("nobody is told that the object does not decode")
			}
			if !strings.Contains(lines[0], "spec.field") || !strings.Contains(lines[0], "string") {
				return errors.New("it is not told where: " + lines[0])
			}
			return nil
		})
		kit.Eventually(t, func() error {
			if _, found := s.record(id); !found {
				return errors.New("it is not recorded that the handler is due")
			}
			return nil
		})
		o.staysQuiet(t, d)
		told[id] = len(o.Log.With("Handler '" + id + "' is not called"))
		if r, found := s.record(id); found && r.Retries > 0 {
			t.Errorf("attempts of %s are counted: %+v", id, r)
		}
	}
	s.Create(examples, "x", broken)
	reported("create_fn")
	s.Patch(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")

	s.Patch(examples, "x", broken)
	reported("update_fn")
	s.Patch(examples, "x", spec("b"))
	s.waitHandled(examples, "x", "b")

	s.Patch(examples, "x", broken)
	reported("update_fn")
	s.Delete(examples, "x")
	reported("delete_fn")
	if err := hasFinalizers(finalizer)(s.Get(examples, "x")); err != nil {
		t.Errorf("the deletion does not wait: %v", err)
	}
	s.Patch(examples, "x", spec("c"))
	s.waitGone(examples, "x")
	d.Check(t, "create create a", "update update b", "delete delete c")
}

func TestAnObjectThatDoesNotDecodeFailsIfThatIsAskedFor(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	gopf.For[*Example](op, examples).OnCreate("create_fn", d.handler("create"), gopf.ErrorsPermanent())
	s.start(op, nil)
	s.Create(examples, "x", fields{"spec": fields{"field": 42}})
	s.waitFor(examples, "x", handled(`{"spec":{"field":42}}`))
	d.Check(t)
}

// A handler that is never due as long as its object does not decode must not
// keep others from their turn, nor the operator busy.
func TestAnObjectThatDoesNotDecodeForOneHandlerIsHandledByTheOthers(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	op.Settings.Execution.DefaultBackoff = 30 * time.Second
	gopf.For[*Example](op, examples).OnCreate("typed", d.handler("typed"))
	op.Resource(examples).OnCreate("untyped", func(context.Context, *gopf.Change[gopf.Unstructured]) error {
		d.Add("untyped")
		return nil
	})
	o := s.start(op, nil)
	s.Create(examples, "x", fields{"spec": fields{"field": 42}})
	kit.Eventually(t, func() error {
		if n := len(o.Log.With("Handler 'typed' is not called")); n > 50 {
			t.Fatalf("the operator spins: %d attempts", n)
		}
		if d.Count("untyped") == 0 {
			return fmt.Errorf("the other handler was not called")
		}
		return nil
	})
	s.Patch(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	d.Check(t, "untyped", "typed create a")
}
