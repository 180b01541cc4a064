package handling_test

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"gopf.dev/gopf"
	"gopf.dev/gopf/storage"
)

func TestTwoOperatorsOfTheSameObjectsDoNotDisturbEachOther(t *testing.T) {
	t.Parallel()
	s := newSpace(t)
	diaries := map[string]*diary{"one.example.com": {}, "two.example.com": {}}
	var running []*operator
	for prefix, d := range diaries {
		op := storedLife(examples, d, 1, storage.NewAnnotationProgress(prefix), storage.NewAnnotationBase(prefix))
		op.Settings.Persistence.Finalizer = prefix + "/finalizer"
		running = append(running, s.start(op, nil).following("examples"))
	}
	settled := func(field string) {
		t.Helper()
		s.waitFor(examples, "x", annotated(map[string]string{
			"one.example.com/kopf-managed": "yes", "one.example.com/last-handled-configuration": kopfBase(field),
			"two.example.com/kopf-managed": "yes", "two.example.com/last-handled-configuration": kopfBase(field),
		}))
	}
	s.Create(examples, "x", spec("a"))
	settled("a")
	s.Patch(examples, "x", spec("b"))
	settled("b")
	if got := s.Get(examples, "x").GetFinalizers(); len(got) != 2 {
		t.Errorf("finalizers: %q", got)
	}
	for i, d := range []*diary{diaries["one.example.com"], diaries["two.example.com"]} {
		running[i].staysQuiet(t, d)
	}
	s.Delete(examples, "x")
	s.waitGone(examples, "x")
	for _, d := range diaries {
		d.Check(t, "first create a", "second create a", "update a->b", "delete delete b")
	}
}

func TestAHandlerThatChangesItsOwnObjectComesToAnEnd(t *testing.T) {
	t.Parallel()
	s, d := newSpace(t), &diary{}
	op := newOperator()
	gopf.For[*Example](op, examples).On(gopf.Create|gopf.Update, "mirror", func(_ context.Context, c *gopf.Change[*Example]) error {
		d.Add("%s %s %s", c.Reason, c.Object.Spec.Field, c.Object.Labels["mirror"])
		c.Patch.Label("mirror", c.Object.Spec.Field)
		return nil
	})
	o := s.start(op, nil)
	s.Create(examples, "x", spec("a"))
	mirrored := func(v string) {
		t.Helper()
		s.waitFor(examples, "x", handled(`{"spec":{"field":"`+v+`"},"metadata":{"labels":{"mirror":"`+v+`"}}}`))
	}
	mirrored("a")
	s.Patch(examples, "x", spec("b"))
	mirrored("b")
	o.staysQuiet(t, d)
	d.Check(t, "create a ", "update a a", "update b a", "update b b")
}

func TestLargeObjectsAreHandled(t *testing.T) {
	t.Parallel()
	noise := make([]byte, 300_000)
	_, _ = rand.Read(noise) // never fails
	for name, test := range map[string]struct {
		blob string
		key  string
		diff string // of the next change
	}{
		"as they are": {strings.Repeat("a", 100_000), lastHandled, "spec.field"},
		"compressed":  {strings.Repeat("a", 400_000), lastHandled + "-gz", "spec.field"},
		"as a digest": {base64.StdEncoding.EncodeToString(noise), lastHandled, "spec"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s, d := newSpace(t), &diary{}
			declare := func() *gopf.Operator {
				op := newOperator()
				x := gopf.For[*Example](op, examples)
				x.OnCreate("create_fn", d.handler("create"))
				x.OnUpdate("update_fn", func(_ context.Context, c *gopf.Change[*Example]) error {
					var paths []string
					for _, item := range c.Diff {
						paths = append(paths, strings.Join(item.Path, "."))
					}
					d.Add("update %s: %q", c.Object.Spec.Field, paths)
					return nil
				})
				return op
			}
			o := s.start(declare(), nil)
			s.Create(examples, "x", fields{"spec": fields{"field": "a", "blob": test.blob}})
			last := ""
			stored := func(obj *unstructured.Unstructured) error {
				if got := obj.GetAnnotations(); len(got) != 2 || !strings.HasPrefix(got[bound], string(obj.GetUID())) || got[test.key] == last {
					return fmt.Errorf("annotations: %d, %s", len(got), slices.Sorted(maps.Keys(got)))
				}
				return nil
			}
			last = s.waitFor(examples, "x", stored).GetAnnotations()[test.key]
			s.Patch(examples, "x", spec("b"))
			d.WaitFor(t, fmt.Sprintf("update b: [%q]", test.diff))
			s.waitFor(examples, "x", stored)
			o.staysQuiet(t, d)
			o.Stop()
			o = s.start(declare(), nil).following("examples")
			o.staysQuiet(t, d)
		})
	}
}
