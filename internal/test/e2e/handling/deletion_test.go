package handling_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"gopf.dev/gopf"
)

func TestANamespaceCanBeDeletedWhileItsObjectsWaitForTheOperator(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	for i := range 3 {
		s.Create(examples, fmt.Sprint("x", i), spec("a"))
	}
	for i := range 3 {
		s.waitHandled(examples, fmt.Sprint("x", i), "a")
	}
	s.Delete("v1/namespaces", s.Name)
	s.waitGone("v1/namespaces", s.Name)
	if n := d.Count("delete delete a"); n != 3 {
		t.Errorf("%d deletions were handled, want 3", n)
	}
	o.staysQuiet(t, d)
}

func TestADeletionDuringADowntimeIsHandledAtTheNextStart(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	s.Create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	o.Stop()
	s.Patch(examples, "x", spec("b"))
	s.Delete(examples, "x")
	o = s.start(withDeletion(d), nil)
	s.waitGone(examples, "x")
	o.staysQuiet(t, d)
	d.Check(t, "create create a", "delete delete b")
}

func TestAChangeDuringADowntimeIsHandledAtTheNextStart(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	declare := func() *gopf.Operator {
		op := typedLife(examples, d)
		gopf.For[*Example](op, examples).OnResume("resume_fn", d.handler("resume"))
		return op
	}
	o := s.start(declare(), nil)
	s.Create(examples, "changed", spec("a"))
	s.waitHandled(examples, "changed", "a")
	o.Stop()
	s.Patch(examples, "changed", spec("b"))
	s.Patch(examples, "changed", spec("c"))
	o = s.start(declare(), nil)
	s.waitHandled(examples, "changed", "c")
	o.staysQuiet(t, d)
	d.Check(t, "create a", "field <nil>->a",
		`update a->c: change spec.field: "a" -> "c"`, "field a->c", "resume update c")
}

func TestAnObjectDeletedAndMadeAnewIsHandledBothTimes(t *testing.T) {
	t.Parallel()
	for _, finalized := range []bool{false, true} {
		t.Run(fmt.Sprintf("finalized %v", finalized), func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			x := gopf.For[*Example](op, examples)
			x.OnCreate("create_fn", d.handler("create"))
			x.OnUpdate("update_fn", d.handler("update"))
			if finalized {
				x.OnDelete("delete_fn", d.handler("delete"))
			}
			o := s.start(op, nil)
			var want []string
			for i := range 4 {
				v := fmt.Sprint("v", i)
				s.Create(examples, "x", spec(v))
				s.waitHandled(examples, "x", v)
				s.Delete(examples, "x")
				s.waitGone(examples, "x")
				want = append(want, "create create "+v)
				if finalized {
					want = append(want, "delete delete "+v)
				}
			}
			o.staysQuiet(t, d)
			d.Check(t, want...)
		})
	}
}

func TestADeletionComesBeforeWhatIsDelayed(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("create")
		return gopf.Wait(time.Hour, "it is not there yet")
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	x.OnDelete("optional_fn", d.handler("optional"), gopf.Optional())
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "create")
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	d.Check(t, "create", "delete delete a", "optional delete a")
	if len(o.Log.With("Creation is superseded by deletion: 0 succeeded; 0 failed; 1 left to the moment.")) == 0 {
		t.Error("nobody was told that the creation is not finished")
	}
}

func TestAnOptionalDeletionHandlerDoesNotHoldUpTheDeletion(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", d.handler("create"))
	x.OnDelete("optional_fn", d.handler("optional"), gopf.Optional())
	s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	if got := s.waitHandled(examples, "x", "a").GetFinalizers(); len(got) > 0 {
		t.Errorf("finalizers: %q", got)
	}
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
}

func TestAFinalizerThatNobodyNeedsAnyMoreIsRemoved(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	s.Create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	o.Stop()
	op := newOperator() // the next version of it has no handler for deletions
	gopf.For[*Example](op, examples).OnCreate("create_fn", d.handler("create"))
	o = s.start(op, nil)
	s.waitFor(examples, "x", hasFinalizers())
	o.staysQuiet(t, d)
	o.wire.checkWrites(t, 0, "PATCH examples/x")
	d.Check(t, "create create a")
}
