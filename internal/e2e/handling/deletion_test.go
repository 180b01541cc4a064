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
		s.create(examples, fmt.Sprint("x", i), spec("a"))
	}
	for i := range 3 {
		s.waitHandled(examples, fmt.Sprint("x", i), "a")
	}
	s.delete("v1/namespaces", s.name)
	s.waitGone("v1/namespaces", s.name)
	if n := d.count("delete delete a"); n != 3 {
		t.Errorf("%d deletions were handled, want 3", n)
	}
	o.staysQuiet(t, d)
}

func TestADeletionDuringADowntimeIsHandledAtTheNextStart(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	s.create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	o.stop()
	s.patch(examples, "x", spec("b"))
	s.delete(examples, "x")
	o = s.start(withDeletion(d), nil)
	s.waitGone(examples, "x")
	o.staysQuiet(t, d)
	d.check(t, "create create a", "delete delete b")
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
	s.create(examples, "changed", spec("a"))
	s.waitHandled(examples, "changed", "a")
	o.stop()
	s.patch(examples, "changed", spec("b"))
	s.patch(examples, "changed", spec("c"))
	o = s.start(declare(), nil)
	s.waitHandled(examples, "changed", "c")
	o.staysQuiet(t, d)
	d.check(t, "create a", "field <nil>->a",
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
				s.create(examples, "x", spec(v))
				s.waitHandled(examples, "x", v)
				s.delete(examples, "x")
				s.waitGone(examples, "x")
				want = append(want, "create create "+v)
				if finalized {
					want = append(want, "delete delete "+v)
				}
			}
			o.staysQuiet(t, d)
			d.check(t, want...)
		})
	}
}

func TestADeletionComesBeforeWhatIsDelayed(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.add("create")
		return gopf.Wait(time.Hour, "it is not there yet")
	})
	x.OnDelete("delete_fn", d.handler("delete"))
	x.OnDelete("optional_fn", d.handler("optional"), gopf.Optional())
	o := s.start(op, nil)
	s.create(examples, "x", spec("a"))
	d.waitFor(t, "create")
	s.delete(examples, "x")
	s.waitGone(examples, "x")
	d.check(t, "create", "delete delete a", "optional delete a")
	if len(o.log.with("Creation is superseded by deletion: 0 succeeded; 0 failed; 1 left to the moment.")) == 0 {
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
	s.create(examples, "x", spec("a"))
	if got := s.waitHandled(examples, "x", "a").GetFinalizers(); len(got) > 0 {
		t.Errorf("finalizers: %q", got)
	}
	s.delete(examples, "x")
	s.waitGone(examples, "x")
}

func TestAFinalizerThatNobodyNeedsAnyMoreIsRemoved(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	s.create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	o.stop()
	op := newOperator() // the next version of it has no handler for deletions
	gopf.For[*Example](op, examples).OnCreate("create_fn", d.handler("create"))
	o = s.start(op, nil)
	s.waitFor(examples, "x", hasFinalizers())
	o.staysQuiet(t, d)
	o.wire.checkWrites(t, 0, "PATCH examples/x")
	d.check(t, "create create a")
}
