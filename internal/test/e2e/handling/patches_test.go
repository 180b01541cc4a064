package handling_test

import (
	"context"
	"fmt"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
)

func TestResultsAreKeptAsTheyAre(t *testing.T) {
	t.Parallel()
	for _, resource := range []string{examples, plains} {
		t.Run(plural(resource), func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			results := map[string]any{
				"text": "<&> ü \u2028", "yes": true, "int": 42, "big": int64(1) << 53, "float": 1.5, "whole": 2.0,
				"list": []any{1, "two", []int{3}, map[string]any{}}, "empty_list": []string{},
				"struct": struct {
					Count int `json:"count"`
				}{7}, "zero": 0, "empty": "", "false": false,
			}
			op := newOperator()
			for id, v := range results {
				gopf.For[*Example](op, resource).OnCreate(id, func(_ context.Context, c *gopf.Change[*Example]) error {
					c.SetResult(v)
					return nil
				})
			}
			o := s.start(op, nil)
			s.Create(resource, "x", spec("a"))
			obj := s.waitHandled(resource, "x", "a")
			if got, want := toJSON(obj.Object["status"]), toJSON(results); got != want {
				t.Errorf("status:\ngot  %s\nwant %s", got, want)
			}
			if got := o.Log.With("inconsistencies"); len(got) > 0 {
				t.Errorf("complaints: %q", got)
			}
			o.staysQuiet(t, d)
		})
	}
}

func TestHandlersChangeWhatTheyAskFor(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	gopf.For[*Example](op, examples).OnCreate("create_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
		c.Patch.Label("added", "1")
		c.Patch.Unlabel("removed")
		c.Patch.Annotate("example.com/added", "1")
		c.Patch.Unannotate("example.com/removed")
		c.Patch.Set("spec.deep.number", 1)
		c.Patch.Set("/spec/with.dots", "yes")
		c.Patch.Remove("spec.removed")
		c.Patch.MergeStatus(map[string]any{"phase": "Ready", "count": 1})
		c.Patch.Edit(func(e *Example) { e.Spec.Items = append(e.Spec.Items, "edited") })
		return nil
	})
	o := s.start(op, nil)
	s.Create(examples, "x", fields{
		"metadata": fields{"labels": fields{"removed": "1", "kept": "1"}, "annotations": fields{"example.com/removed": "1", "example.com/kept": "1"}},
		"spec":     fields{"field": "a", "removed": "1", "kept": "1", "deep": fields{"kept": "1"}},
	})
	obj := s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
		if base := obj.GetAnnotations()[lastHandled]; base != essenceOf(obj.Object)+"\n" {
			return fmt.Errorf("last handled: %s", base)
		}
		return nil
	})
	if got, want := essenceOf(obj.Object), `{"spec":{"deep":{"kept":"1","number":1},"field":"a","items":["edited"],"kept":"1","with.dots":"yes"},`+
		`"metadata":{"labels":{"added":"1","kept":"1"},"annotations":{"example.com/added":"1","example.com/kept":"1"}}}`; got != want {
		t.Errorf("the object:\ngot  %s\nwant %s", got, want)
	}
	checkStatus(t, obj, fields{"phase": "Ready", "count": int64(1)})
	o.staysQuiet(t, d)
}

func TestEditsWhoseAnswersAreLostAreNotMadeTwice(t *testing.T) {
	t.Parallel()
	for _, reason := range []gopf.Reason{gopf.Create, gopf.Delete} {
		for _, resource := range []string{examples, plains} {
			t.Run(fmt.Sprintf("%s of %s", reason, plural(resource)), func(t *testing.T) {
				t.Parallel()
				s, d := newSpace(t), &diary{}
				op := newOperator()
				gopf.For[*Example](op, resource).On(reason, "edit_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
					c.Patch.Edit(func(e *Example) { e.Spec.Items = append(e.Spec.Items, "ours") })
					c.SetResult("done")
					d.Add("called")
					return nil
				})
				o := s.start(op, func(int, write) mishap { return answerLost }) // every time
				obj := finalizers(others...)                                    // so that it can be looked at afterwards
				obj["spec"] = fields{"items": []string{"theirs"}}
				s.Create(resource, "x", obj)
				if reason == gopf.Delete {
					s.waitFor(resource, "x", handled(`{"spec":{"items":["theirs"]}}`))
					s.Delete(resource, "x")
				}
				done := hasFinalizers(others...)
				if reason == gopf.Create {
					done = handled(`{"spec":{"items":["theirs","ours"]}}`)
				}
				after := s.waitFor(resource, "x", done)
				o.staysQuiet(t, d)
				if items, _, _ := unstructured.NestedStringSlice(after.Object, "spec", "items"); !slices.Equal(items, []string{"theirs", "ours"}) {
					t.Errorf("the items are %q", items)
				}
				checkStatus(t, after, fields{"edit_fn": "done"})
				d.Check(t, "called")
			})
		}
	}
}

func TestOtherNamespacesAreLeftAlone(t *testing.T) {
	t.Parallel()
	s, other, d := newSpace(t), newSpace(t), &diary{}
	o := s.start(withDeletion(d), nil).following("examples")
	before := other.Create(examples, "x", spec("a"))
	s.Create(examples, "x", spec("b"))
	s.waitHandled(examples, "x", "b")
	o.staysQuiet(t, d)
	d.Check(t, "create create b")
	if now := other.Get(examples, "x"); now.GetResourceVersion() != before.GetResourceVersion() {
		t.Errorf("an object elsewhere was changed: %v", now.Object)
	}
}

// An empty object is a value: it may be what switches something on.
func TestEmptyObjectsAreWritten(t *testing.T) {
	t.Parallel()
	for _, reason := range []gopf.Reason{gopf.Create, gopf.Delete} {
		t.Run(reason.String(), func(t *testing.T) {
			t.Parallel()
			s := newSpace(t)
			op := newOperator()
			gopf.For[*Example](op, examples).On(reason, "fn", func(_ context.Context, c *gopf.Change[*Example]) error {
				c.Patch.Set("spec.emptyDir", map[string]any{})
				c.SetResult(map[string]any{})
				return nil
			})
			s.start(op, nil)
			obj := finalizers(others...) // so that it can be looked at afterwards
			obj["spec"] = fields{"field": "a"}
			s.Create(examples, "x", obj)
			if reason == gopf.Delete {
				s.waitHandled(examples, "x", "a")
				s.Delete(examples, "x")
			}
			s.waitFor(examples, "x", func(obj *unstructured.Unstructured) error {
				if got := toJSON(obj.Object["spec"]) + toJSON(obj.Object["status"]); got != `{"emptyDir":{},"field":"a"}{"fn":{}}` {
					return fmt.Errorf("spec and status: %s", got)
				}
				return nil
			})
		})
	}
}
