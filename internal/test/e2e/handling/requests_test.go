package handling_test

import (
	"context"
	"testing"

	"gopf.dev/gopf"
)

// result is a handler that has a result.
func result(d *diary, name string) gopf.ChangeFunc[*Example] {
	return func(ctx context.Context, c *gopf.Change[*Example]) error {
		c.SetResult(map[string]string{"message": c.Object.Spec.Field})
		return d.handler(name)(ctx, c)
	}
}

func TestACreationCostsAsFewRequestsAsPossible(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name      string
		resource  string
		result    bool
		finalizer bool
		want      []string
	}{
		{"without a result", examples, false, false, []string{"PATCH examples/x"}},
		{"without a result, with a finalizer", examples, false, true, []string{"PATCH examples/x", "PATCH examples/x"}},
		{"with a result", examples, true, false, []string{"PATCH examples/x/status", "PATCH examples/x"}},
		{"with a result and a finalizer", examples, true, true, []string{"PATCH examples/x", "PATCH examples/x/status", "PATCH examples/x"}},
		{"no subresource", plains, false, false, []string{"PATCH plains/x"}},
		{"no subresource, with a result", plains, true, false, []string{"PATCH plains/x"}},
		{"no subresource, with a result and a finalizer", plains, true, true, []string{"PATCH plains/x", "PATCH plains/x"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			declare := func() *gopf.Operator {
				op := newOperator()
				x := gopf.For[*Example](op, test.resource)
				if test.result {
					x.OnCreate("create_fn", result(d, "create"))
				} else {
					x.OnCreate("create_fn", d.handler("create"))
				}
				x.OnUpdate("update_fn", d.handler("update"))
				if test.finalizer {
					x.OnDelete("delete_fn", d.handler("delete"))
				}
				return op
			}
			o := s.start(declare(), nil).following(plural(test.resource))
			s.Create(test.resource, "x", spec("a"))
			s.waitHandled(test.resource, "x", "a")
			o.staysQuiet(t, d)
			o.wire.checkWrites(t, 0, test.want...)

			foreign := fields{"status": fields{"phase": "Ready"}}
			if test.resource == examples {
				s.Patch(test.resource, "x", foreign, "status")
			} else {
				s.Patch(test.resource, "x", foreign)
			}
			o.staysQuiet(t, d)
			o.wire.checkWrites(t, 0, test.want...)
			o.Stop()

			again := s.start(declare(), nil).following(plural(test.resource))
			again.staysQuiet(t, d)
			again.wire.checkWrites(t, 0)
			d.Check(t, "create create a")
		})
	}
}

func TestAnUpdateCostsOneRequestAndADeletionToo(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnUpdate("update_fn", d.handler("update"))
	x.OnDelete("delete_fn", d.handler("delete"))
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	before := len(o.wire.all())
	s.Patch(examples, "x", spec("b"))
	s.waitHandled(examples, "x", "b")
	o.wire.checkWrites(t, before, "PATCH examples/x")
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	o.staysQuiet(t, d)
	o.wire.checkWrites(t, before, "PATCH examples/x", "PATCH examples/x")
	d.Check(t, "update update b", "delete delete b")
}
