package handling_test

import (
	"context"
	"strings"
	"testing"

	"gopf.dev/gopf"
)

func TestObjectsThatNoHandlerIsForAreLeftAlone(t *testing.T) {
	t.Parallel()
	type handle = *gopf.Resource[*Example]
	labels := fields{"tier": "prod", "owner": "me"}
	annotations := fields{"example.com/mode": "auto"}
	match := fields{"metadata": fields{"labels": labels, "annotations": annotations}, "spec": fields{"field": "wanted"}}
	other := fields{"metadata": fields{"labels": fields{"tier": "test"}}, "spec": fields{"field": "unwanted"}}
	for _, test := range []struct {
		name   string
		narrow func(handle) handle
	}{
		{"by the value of a label", func(x handle) handle { return x.WithLabel("tier", gopf.Is("prod")) }},
		{"by a label being there", func(x handle) handle { return x.WithLabel("owner", gopf.Present) }},
		{"by a label not being there", func(x handle) handle {
			return x.WithLabel("other", gopf.Absent).WithLabel("owner", gopf.Not(gopf.Absent))
		}},
		{"by an annotation", func(x handle) handle {
			return x.WithAnnotation("example.com/mode", gopf.AnyOf(gopf.Is("auto"), gopf.Is("manual")))
		}},
		{"by a field", func(x handle) handle { return x.WithField("spec.field", gopf.Is("wanted")) }},
		{"by a function for a value", func(x handle) handle {
			return x.WithField("/spec/field", gopf.Matching(func(v any, present bool) bool { return present && strings.HasPrefix(v.(string), "want") }))
		}},
		{"by a function for objects", func(x handle) handle {
			return x.When(func(s *gopf.Candidate[*Example]) bool { return s.Object.Spec.Field == "wanted" })
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			op := newOperator()
			x := test.narrow(gopf.For[*Example](op, examples))
			x.OnCreate("create_fn", d.handler("create"))
			x.OnUpdate("update_fn", d.handler("update"))
			x.OnDelete("delete_fn", d.handler("delete"))
			x.OnResume("resume_fn", d.handler("resume"))
			x.OnEvent("event_fn", func(_ context.Context, e *gopf.WatchEvent[*Example]) error {
				if e.Object.Name != "match" {
					d.Add("event of %s", e.Object.Name)
				}
				return nil
			})
			o := s.start(op, nil)
			s.Create(examples, "other", other)
			s.Create(examples, "match", match)
			d.WaitFor(t, "create create wanted")
			s.Patch(examples, "other", fields{"spec": fields{"more": "yes"}})
			s.Patch(examples, "match", fields{"spec": fields{"more": "yes"}})
			d.WaitFor(t, "update update wanted")
			left := s.Get(examples, "other")
			if len(left.GetAnnotations()) > 0 || len(left.GetFinalizers()) > 0 || left.Object["status"] != nil {
				t.Errorf("an object that does not match has traces: %v", left.Object)
			}
			s.Delete(examples, "other")
			s.waitGone(examples, "other")
			s.Delete(examples, "match")
			s.waitGone(examples, "match")
			o.staysQuiet(t, d)
			d.Check(t, "create create wanted", "update update wanted", "delete delete wanted")
			for _, line := range o.wire.lines() {
				if !strings.HasPrefix(line, "PATCH examples/match") {
					t.Errorf("a write to something else: %s", line)
				}
			}
		})
	}
}

func TestAnObjectThatBeginsToMatchIsHandledAsANewOneAndReleasedAfterwards(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples).WithLabel("tier", gopf.Is("prod"))
	x.OnCreate("create_fn", d.handler("create"))
	x.OnDelete("delete_fn", d.handler("delete"))
	o := s.start(op, nil).following("examples")
	tier := func(v any) fields { return fields{"metadata": fields{"labels": fields{"tier": v}}} }
	s.Create(examples, "x", spec("a"))
	o.staysQuiet(t, d)
	s.Patch(examples, "x", tier("prod"))
	s.waitFor(examples, "x", handled(`{"spec":{"field":"a"},"metadata":{"labels":{"tier":"prod"}}}`))
	s.waitFor(examples, "x", hasFinalizers(finalizer))
	s.Patch(examples, "x", tier(nil))
	s.waitFor(examples, "x", hasFinalizers())
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	o.staysQuiet(t, d)
	d.Check(t, "create create a")
}

func TestHandlersOfAFieldAreCalledForItsChangesOnly(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	note := func(name string) gopf.ChangeFunc[*Example] {
		return func(_ context.Context, c *gopf.Change[*Example]) error {
			was, _ := c.OldValue()
			is, _ := c.NewValue()
			d.Add("%s %s %v->%v", name, c.Reason, was, is)
			return nil
		}
	}
	x.OnField("field_fn", "spec.field", note("field"))
	x.Field("spec.field").Changed(gopf.Is("b"), gopf.Is("c")).OnUpdate("b_to_c", note("b to c"))
	x.Field("status.phase").OnUpdate("phase_fn", note("phase"))
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	d.WaitFor(t, "field create <nil>->a")
	s.waitHandled(examples, "x", "a")
	for _, change := range []struct {
		of   fields
		sub  []string
		want string
	}{
		{fields{"spec": fields{"other": "1"}}, nil, ""},
		{spec("b"), nil, "field update a->b"},
		{spec("c"), nil, "b to c update b->c"},
		{fields{"status": fields{"phase": "Ready", "other": "1"}}, []string{"status"}, "phase update <nil>->Ready"},
		{fields{"status": fields{"other": "2"}}, []string{"status"}, ""},
		{fields{"spec": fields{"field": nil}}, nil, "field update c-><nil>"},
	} {
		s.Patch(examples, "x", change.of, change.sub...)
		if change.want != "" {
			d.WaitFor(t, change.want)
		}
		s.waitFor(examples, "x", pendingNone)
	}
	o.staysQuiet(t, d)
	d.Check(t, "field create <nil>->a", "field update a->b", "field update b->c", "b to c update b->c",
		"phase update <nil>->Ready", "field update c-><nil>")
}
