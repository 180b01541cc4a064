package admission_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	admissionv1 "k8s.io/api/admission/v1"

	"gopf.dev/gopf"
	"gopf.dev/gopf/internal/test/e2e/kit"
)

type (
	review  = gopf.Review[*Thing]
	untyped = gopf.Review[gopf.Unstructured]
)

func TestUsersSeeWhyTheyAreRefusedAndWhatTheyAreWarnedOf(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("Check_Field", func(_ context.Context, r *review) error {
		r.AddWarning("the field is %q,\nbeware", r.Object.Spec.Field)
		switch r.Object.Spec.Field {
		case "bad":
			return gopf.Deny("%s is a bad field", r.Object.Name)
		case "tea":
			return fmt.Errorf("make coffee: %w", &gopf.AdmissionError{Message: "this is a teapot", Code: http.StatusTeapot})
		}
		return nil
	})
	op.Resource(w.things()).WithField("spec.untyped", gopf.Present).Validate("untyped", func(_ context.Context, r *untyped) error {
		value, _ := gopf.ValueAt[string](r, "spec.untyped")
		return gopf.Deny("untyped: %s of %s", value, r.Object.GetName())
	})
	w.run(op)
	u := w.try(cluster)

	_, err := u.create("a", spec(fields{"field": "bad"}))
	denied(t, err, http.StatusForbidden, "a is a bad field", `"check-field.`+w.managed+`"`)
	_, err = u.create("a", spec(fields{"field": "tea"}))
	denied(t, err, http.StatusTeapot, "make coffee: this is a teapot")
	_, err = u.create("a", spec(fields{"untyped": "value"}))
	denied(t, err, http.StatusForbidden, "untyped: value of a")
	u.warned()
	w.must(u.create("a", spec(fields{"field": "good"})))
	if got := u.warned(); !slices.Equal(got, []string{`the field is "good", beware`}) {
		t.Errorf("warnings: %q", got)
	}
	_, err = u.patch("a", spec(fields{"field": "bad"}))
	denied(t, err, http.StatusForbidden, "a is a bad field")
	if got := u.warned(); !slices.Equal(got, []string{`the field is "bad", beware`}) {
		t.Errorf("warnings of a refusal: %q", got)
	}
}

func TestAllErrorsRefuse(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	op := w.operator()
	gopf.For[*Thing](op, w.things()).Validate("check", func(_ context.Context, r *review) error {
		switch r.Object.Spec.Field {
		case "error":
			return errors.New("something is wrong")
		case "permanent":
			return gopf.Permanent(errors.New("something is wrong for good"))
		case "temporary":
			return gopf.RetryAfter(time.Minute, errors.New("something is not there yet"))
		case "panic":
			panic("something is broken")
		}
		return nil
	})
	o := w.run(op)
	u := w.try(cluster)
	for field, text := range map[string]string{
		"error": "something is wrong", "permanent": "something is wrong for good",
		"temporary": "something is not there yet", "panic": "the admission handler panicked",
	} {
		_, err := u.create("a", spec(fields{"field": field}))
		denied(t, err, http.StatusInternalServerError, text)
	}
	if len(o.Log.With("[ERROR", "'check'", "something is broken")) == 0 {
		t.Error("the panic is not in the log")
	}
	w.must(u.create("a", spec(fields{"field": "fine"})))
}

func TestObjectsThatDoNotFitAreRefused(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	x.Validate("check", func(context.Context, *review) error { d.Add("validate"); return nil })
	x.When(func(s *gopf.Candidate[*Thing]) bool { return s.Object.Spec.Size > 10 }).
		Mutate("change", func(context.Context, *review) error { d.Add("mutate"); return nil }, gopf.Operations(admissionv1.Update))
	w.run(op)
	u := w.try(cluster)
	_, err := u.create("a", spec(fields{"size": "large"}))
	denied(t, err, http.StatusUnprocessableEntity, "spec.size", "*admission_test.Thing")
	w.must(u.create("a", spec(fields{"size": 1})))
	_, err = u.patch("a", spec(fields{"size": true}))
	denied(t, err, http.StatusUnprocessableEntity, "spec.size")
	d.CheckNew(t, "validate")
}

func TestHandlersOfOneKindAreAskedInTheirOrder(t *testing.T) {
	t.Parallel()
	w, d := newWorld(t), &kit.Diary{}
	op := w.operator()
	x := gopf.For[*Thing](op, w.things())
	for _, id := range []string{"z", "a", "m"} {
		x.Mutate("mutate-"+id, func(_ context.Context, r *review) error {
			d.Add("%s %s", id, r.Object.Spec.Field)
			r.Patch.Set("spec.field", r.Object.Spec.Field+id)
			return nil
		})
		x.Validate("validate-"+id, func(_ context.Context, r *review) error {
			if strings.Contains(r.Object.Labels["deny"], id) {
				return gopf.Deny("%s refuses %s", id, r.Object.Spec.Field)
			}
			return nil
		})
	}
	w.run(op)
	u := w.try(cluster)
	made := w.must(u.create("x", spec(fields{"field": "-"})))
	d.CheckNew(t, "z -", "a -z", "m -za")
	if got := made.Object["spec"].(fields)["field"]; got != "-zam" {
		t.Errorf("the field is %q", got)
	}
	_, err := u.create("y", labelled(fields{"deny": "am"}, fields{"field": "+"}))
	denied(t, err, http.StatusForbidden, "refuses +zam")
}
