package handling_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

// The edits of a deletion handler go along with the removal of the finalizer.
func TestEditsThatGoWithTheFinalizerAreMadeAnewToo(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	op := newOperator()
	gopf.For[*Example](op, examples).OnDelete("delete_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Edit(func(e *Example) { e.Spec.Items = append(e.Spec.Items, "ours") })
		return nil
	})
	struck := false
	s.start(op, func(_ int, w write) mishap {
		if !struck && strings.Contains(w.body, `{"op":"remove","path":"/metadata/finalizers`) {
			struck = true
			if err := s.tryPatch(examples, "x", fields{"spec": fields{"items": []string{"theirs"}}}); err != nil {
				t.Error(err)
			}
		}
		return ""
	})
	obj := finalizers(others...) // so that it can be looked at afterwards
	obj["spec"] = fields{"field": "a"}
	s.create(examples, "x", obj)
	s.waitHandled(examples, "x", "a")
	s.delete(examples, "x")
	after := s.waitFor(examples, "x", hasFinalizers(others...))
	if items, _, _ := unstructured.NestedStringSlice(after.Object, "spec", "items"); !slices.Equal(items, []string{"theirs", "ours"}) {
		t.Errorf("the items are %q, want theirs and ours", items)
	}
}

// What was to be written about an object must not go to another one, which has
// got its name meanwhile: neither the results, nor that it was handled.
func TestASuccessorOfTheSameNameIsHandledOnItsOwn(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{examples, plains} {
		for _, late := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s, after the successor was handled %v", plural(resource), late), func(t *testing.T) {
				t.Parallel()
				s, d := newSpace(t), &diary{}
				declare := func() *gopf.Operator {
					op := newOperator()
					gopf.For[*Example](op, resource).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
						c.SetResult(map[string]string{"of": string(c.Object.UID)})
						d.add("create %s", c.Object.UID)
						return nil
					})
					return op
				}
				own := func(obj *unstructured.Unstructured) error {
					of, _, _ := unstructured.NestedString(obj.Object, "status", "create_fn", "of")
					if of != string(obj.GetUID()) || d.count("create "+of) == 0 {
						return fmt.Errorf("the result is of %q, want it of %q, for which handlers were called: %q", of, obj.GetUID(), d.all())
					}
					return nil
				}
				o := s.start(declare(), func(n int, _ write) mishap {
					if n > 1 {
						return ""
					}
					if err := s.replace(resource, "x", spec("a")); err != nil {
						t.Error(err)
					}
					if late {
						s.waitHandled(resource, "x", "a")
						return ""
					}
					return killedAfter
				})
				s.create(resource, "x", spec("a"))
				if !late {
					eventually(t, func() error {
						if !o.wire.isDead() {
							return fmt.Errorf("nothing was written")
						}
						return nil
					})
					o.stop()
					o = s.start(declare(), nil)
				}
				s.waitFor(resource, "x", own)
				o.staysQuiet(t, d)
				s.waitFor(resource, "x", own)
			})
		}
	}
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
		d.add("untyped")
		return nil
	})
	o := s.start(op, nil)
	s.create(examples, "x", fields{"spec": fields{"field": 42}})
	eventually(t, func() error {
		if n := len(o.log.with("Handler 'typed' is not called")); n > 50 {
			t.Fatalf("the operator spins: %d attempts", n)
		}
		if d.count("untyped") == 0 {
			return fmt.Errorf("the other handler was not called")
		}
		return nil
	})
	s.patch(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	d.check(t, "untyped", "typed create a")
}
