package admission_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

func TestFiltersChooseWhoIsAsked(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	note := func(id string) func(context.Context, *gopf.Review[*Thing]) error {
		return func(_ context.Context, r *review) error { d.Add("%s", id); return nil }
	}
	x.WithLabel("tier", gopf.Is("prod")).WithLabel("skip", gopf.Absent).Mutate("label", note("label"))
	x.WithLabel("tier", gopf.Matching(func(v any, _ bool) bool { s, _ := v.(string); return strings.HasPrefix(s, "pro") })).Mutate("label-func", note("label-func"))
	x.WithAnnotation("tier", gopf.Present).Mutate("annotation", note("annotation"))
	x.WithField("spec.size", gopf.Is(3)).Mutate("field", note("field"))
	x.Field("spec.size").Value(gopf.Is(4)).Mutate("value", note("value"))
	x.When(func(s *gopf.Candidate[*Thing]) bool { return s.Object.Spec.Size > 5 }).Mutate("when", note("when"))
	w.run(op)

	if d := cmp.Diff(fields{"matchExpressions": []any{
		fields{"key": "tier", "operator": "In", "values": []any{"prod"}},
		fields{"key": "skip", "operator": "DoesNotExist"},
	}}, w.webhooks(mutating)["label."+w.managed]["objectSelector"]); d != "" {
		t.Errorf("what the server checks: -want +got\n%s", d)
	}
	if got := w.webhooks(mutating)["value.spec.size."+w.managed]; got == nil {
		t.Error("the field is not in the name of the webhook")
	}
	u := w.try(cluster)
	for name, test := range map[string]struct {
		of   fields
		want []string
	}{
		"none":        {fields{}, nil},
		"label":       {labelled(fields{"tier": "prod"}, nil), []string{"label", "label-func"}},
		"two-labels":  {labelled(fields{"tier": "prod", "skip": "me"}, nil), []string{"label-func"}},
		"other-label": {labelled(fields{"tier": "progress"}, nil), []string{"label-func"}},
		"annotation":  {fields{"metadata": fields{"annotations": fields{"tier": ""}}}, []string{"annotation"}},
		"field":       {spec(fields{"size": 3}), []string{"field"}},
		"value":       {spec(fields{"size": 4}), []string{"value"}},
		"when":        {spec(fields{"size": 6}), []string{"when"}},
	} {
		w.must(u.create(name, test.of))
		d.CheckNew(t, test.want...)
	}
	// Of an object that loses the label, the server asks, but the handler is not for it.
	w.must(u.patch("label", fields{"metadata": fields{"labels": fields{"tier": nil}}}))
	d.CheckNew(t)
}

// The server honours labels: the operator is not asked even if it could not answer.
func TestTheClusterFiltersByLabels(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	gopf.For[*Thing](op, w.things()).WithLabel("tier", gopf.Is("prod")).
		Validate("check", func(context.Context, *review) error { return nil }, gopf.Persistent())
	o := w.run(op)
	o.Stop()
	w.asked(false)
	u := w.try(cluster)
	w.must(u.create("a", labelled(fields{"tier": "test"}, nil)))
	if _, err := u.create("b", labelled(fields{"tier": "prod"}, nil)); err == nil || !strings.Contains(err.Error(), "failed calling webhook") {
		t.Errorf("nobody answers, but: %v", err)
	}
}

func TestSubresourcesAreReviewed(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	typed, loose := gopf.For[*Thing](op, w.things()), op.Resource(w.things())
	typed.Validate("object", func(_ context.Context, r *review) error { d.Add("object %q", r.Subresource); return nil })
	typed.Mutate("everything", func(_ context.Context, r *review) error { d.Add("everything %q", r.Subresource); return nil }, gopf.Subresource("*"))
	typed.Validate("status", func(_ context.Context, r *review) error {
		if r.Object.Status["bad"] == true {
			return gopf.Deny("a bad %s", r.Subresource)
		}
		return nil
	}, gopf.Subresource("status"))
	loose.Validate("scale", func(_ context.Context, r *untyped) error {
		if n, _ := gopf.ValueAt[int](r, "spec.replicas"); n > 3 {
			return gopf.Deny("%d are too many in a %s", n, r.Object.GetKind())
		}
		return nil
	}, gopf.Subresource("scale"))
	w.run(op)
	u := w.try(cluster)
	w.must(u.create("a", spec(fields{"replicas": 1})))
	d.CheckNew(t, `everything ""`, `object ""`)
	w.must(u.patch("a", fields{"status": fields{"bad": false}}, "status"))
	d.CheckNew(t, `everything "status"`)
	_, err := u.patch("a", fields{"status": fields{"bad": true}}, "status")
	denied(t, err, http.StatusForbidden, "a bad status")
	d.Take()
	w.must(u.patch("a", spec(fields{"replicas": 2}), "scale"))
	d.CheckNew(t) // a Scale is no Thing
	_, err = u.patch("a", spec(fields{"replicas": 4}), "scale")
	denied(t, err, http.StatusForbidden, "4 are too many in a Scale")
}

func TestWrongDeclarationsAreErrors(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for name, test := range map[string]struct {
		option gopf.ReviewOption
		want   string
	}{
		"a type for objects of another kind": {gopf.Subresource("scale"), "declare it for untyped objects"},
		"an unknown operation":               {gopf.Operations("PATCH"), `unknown operation "PATCH"`},
		"no operation":                       {gopf.Operations(), "empty list of operations"},
	} {
		t.Run(name, func(t *testing.T) {
			w := w.within(t)
			op := w.operator()
			gopf.For[*Thing](op, w.things()).Validate("check", func(context.Context, *review) error { return nil }, test.option)
			if got := w.start(op).fails(); !strings.Contains(got, test.want) || !strings.Contains(got, `"check"`) || !strings.Contains(got, "filters_test.go") {
				t.Errorf("got %s", got)
			}
		})
	}
}
