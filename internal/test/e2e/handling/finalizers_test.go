package handling_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

// others are finalizers that are none of the operator's business.
var others = []string{"example.com/one", "example.com/two"}

func finalizers(names ...string) fields {
	list := []any{}
	for _, n := range names {
		list = append(list, n)
	}
	return fields{"metadata": fields{"finalizers": list}}
}

func hasFinalizers(want ...string) func(*unstructured.Unstructured) error {
	return func(obj *unstructured.Unstructured) error {
		if got := obj.GetFinalizers(); !slices.Equal(got, want) {
			return fmt.Errorf("finalizers are %q, want %q", got, want)
		}
		return nil
	}
}

// withDeletion declares a handler for creation and a mandatory one for deletion.
func withDeletion(d *diary) *gopf.Operator {
	op := newOperator()
	x := gopf.For[*Example](op, examples)
	x.OnCreate("create_fn", d.handler("create"))
	x.OnDelete("delete_fn", d.handler("delete"))
	return op
}

func TestForeignFinalizersAreLeftAlone(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil)
	obj := finalizers(others...)
	obj["spec"] = fields{"field": "a"}
	s.Create(examples, "x", obj)
	s.waitHandled(examples, "x", "a")
	s.waitFor(examples, "x", hasFinalizers(append(others, finalizer)...))
	s.Delete(examples, "x")
	s.waitFor(examples, "x", hasFinalizers(others...))
	o.staysQuiet(t, d)
	s.waitFor(examples, "x", hasFinalizers(others...))
	d.Check(t, "create create a", "delete delete a")
	s.Patch(examples, "x", finalizers())
	s.waitGone(examples, "x")
}

func TestFinalizersChangedByOthersAtTheSameTimeAreKept(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	before := map[string]fields{ // what others do right before ours is added, and removed
		"add":    finalizers(others[0]),
		"remove": finalizers(others[1], finalizer, others[0]),
	}
	s.start(withDeletion(d), func(_ int, w write) mishap {
		for op, change := range before {
			if w.kind == "json" && strings.Contains(w.body, `{"op":"`+op+`","path":"/metadata/finalizers`) {
				delete(before, op)
				if err := s.TryPatch(examples, "x", change); err != nil {
					t.Error(err)
				}
			}
		}
		return ""
	})
	s.Create(examples, "x", spec("a"))
	s.waitHandled(examples, "x", "a")
	s.waitFor(examples, "x", hasFinalizers(others[0], finalizer))
	s.Patch(examples, "x", finalizers(others[1], others[0], finalizer)) // while it lives: later nothing can be added
	s.waitHandled(examples, "x", "a")
	s.Delete(examples, "x")
	s.waitFor(examples, "x", hasFinalizers(others[1], others[0]))
	if len(before) > 0 {
		t.Errorf("these never came: %v", before)
	}
	d.Check(t, "create create a", "delete delete a")
}

func TestAnObjectDeletedBeforeItsFinalizerCouldBeAddedIsLetGo(t *testing.T) {
	t.Parallel()
	for _, held := range []bool{false, true} {
		t.Run(fmt.Sprintf("held by others %v", held), func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			o := s.start(withDeletion(d), func(n int, _ write) mishap {
				if n == 1 {
					if err := s.Of(examples).Delete(context.Background(), "x", metav1.DeleteOptions{}); err != nil {
						t.Error(err)
					}
				}
				return ""
			})
			obj := spec("a")
			if held {
				obj["metadata"] = finalizers(others...)["metadata"]
			}
			s.Create(examples, "x", obj)
			if held {
				kit.Eventually(t, func() error {
					if len(o.Log.With("Deletion, but we are done with it, and we do not care.")) == 0 {
						return fmt.Errorf("the deletion was not noticed")
					}
					return nil
				})
				s.waitFor(examples, "x", hasFinalizers(others...))
			} else {
				s.waitGone(examples, "x")
			}
			o.staysQuiet(t, d)
			d.Check(t)
			o.wire.checkWrites(t, 0, "PATCH examples/x")
			if got := o.Log.With("Throttling"); len(got) > 0 {
				t.Errorf("it was taken for an error: %q", got)
			}
		})
	}
}
