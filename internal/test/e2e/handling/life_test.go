package handling_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// typedLife declares handlers for the whole life of objects that have a type.
func typedLife(resource string, d *diary) *gopf.Operator {
	op := newOperator()
	x := gopf.For[*Example](op, resource)
	x.OnCreate("create_fn", gopf.WithResult(func(_ context.Context, c *gopf.Change[*Example]) (map[string]string, error) {
		d.Add("create %s", c.Object.Spec.Field)
		return map[string]string{"message": "made " + c.Object.Spec.Field}, nil
	}))
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("update %s->%s: %s", c.Old.Spec.Field, c.Object.Spec.Field, c.Diff)
		return nil
	})
	x.OnField("field_fn", "spec.field", func(_ context.Context, c *gopf.Change[*Example]) error {
		was, _ := c.OldValue()
		is, _ := c.NewValue()
		d.Add("field %v->%v", was, is)
		c.SetResult(is)
		return nil
	})
	x.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("delete %s", c.Object.Spec.Field)
		return nil
	})
	return op
}

// untypedLife declares the same for objects without a type.
func untypedLife(resource string, d *diary) *gopf.Operator {
	op := newOperator()
	x := op.Resource(resource)
	field := func(c *gopf.Change[gopf.Unstructured]) string {
		v, _ := gopf.ValueAt[string](c, "spec.field")
		return v
	}
	x.OnCreate("create_fn", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		d.Add("create %s", field(c))
		c.SetResult(map[string]any{"message": "made " + field(c)})
		return nil
	})
	x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		was, _, _ := unstructured.NestedString(c.Old.Object, "spec", "field")
		d.Add("update %s->%s: %s", was, field(c), c.Diff)
		return nil
	})
	x.OnField("field_fn", "spec.field", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		was, _ := c.OldValue()
		d.Add("field %v->%v", was, field(c))
		c.SetResult(field(c))
		return nil
	})
	x.OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[gopf.Unstructured]) error {
		d.Add("delete %s", field(c))
		return nil
	})
	return op
}

func TestTheWholeLifeOfAnObject(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name     string
		resource string
		declare  func(string, *diary) *gopf.Operator
	}{
		{"typed, status subresource", examples, typedLife},
		{"typed, no status subresource", plains, typedLife},
		{"untyped, status subresource", examples, untypedLife},
		{"untyped, no status subresource", plains, untypedLife},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			o := s.start(test.declare(test.resource, d), nil).following(plural(test.resource))

			s.Create(test.resource, "x", spec("a"))
			obj := s.waitHandled(test.resource, "x", "a")
			checkStatus(t, obj, fields{"create_fn": fields{"message": "made a"}, "field_fn/spec.field": "a"})
			if got := obj.GetFinalizers(); !slices.Equal(got, []string{finalizer}) {
				t.Errorf("finalizers: %q", got)
			}
			s.Patch(test.resource, "x", spec("b"))
			obj = s.waitHandled(test.resource, "x", "b")
			checkStatus(t, obj, fields{"create_fn": fields{"message": "made a"}, "field_fn/spec.field": "b"})
			o.staysQuiet(t, d)
			s.Delete(test.resource, "x")
			s.waitGone(test.resource, "x")
			d.Check(t,
				"create a", "field <nil>->a",
				`update a->b: change spec.field: "a" -> "b"`, "field a->b",
				"delete b")
		})
	}
}

func checkStatus(t *testing.T, obj *unstructured.Unstructured, want fields) {
	t.Helper()
	if diff := cmp.Diff(any(want), obj.Object["status"]); diff != "" {
		t.Errorf("status: -want +got\n%s", diff)
	}
}

func TestAnObjectThatWasThereBeforeTheOperatorIsHandledAsANewOne(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	for i := range 3 {
		s.Create(examples, fmt.Sprint("x", i), spec(fmt.Sprint("v", i)))
	}
	s.start(typedLife(examples, d), nil)
	for i := range 3 {
		s.waitHandled(examples, fmt.Sprint("x", i), fmt.Sprint("v", i))
	}
	for i := range 3 {
		if n := d.Count(fmt.Sprint("create v", i)); n != 1 {
			t.Errorf("object %d was created %d times: %q", i, n, d.All())
		}
	}
}
