package handler

import (
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/object"
)

func body(t *testing.T, fields map[string]any) *object.Body {
	t.Helper()
	b, err := object.FromMap(fields)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func spec(field any) map[string]any { return map[string]any{"spec": map[string]any{"f": field}} }

func on(reasons ...cause.Reason) map[cause.Reason]bool {
	all := map[cause.Reason]bool{}
	for _, r := range reasons {
		all[r] = true
	}
	return all
}

func TestHandlersAreSelectedByReasonAndField(t *testing.T) {
	field := &Change{Path: []string{"spec", "f"}}
	every := on(cause.Create, cause.Update, cause.Delete, cause.Resume)
	update := cause.Cause{Reason: cause.Update, Old: spec("a"), New: spec("b")}
	still := cause.Cause{Reason: cause.Update, Old: spec("a"), New: spec("a")}
	resumed := cause.Cause{Reason: cause.Resume, Initial: true, Old: spec("a"), New: spec("a")}
	deleted := cause.Cause{Reason: cause.Delete, Initial: true, Deleting: true, Old: spec("a"), New: spec("a")}
	cases := map[string]struct {
		handler Handler
		cause   cause.Cause
		want    bool
	}{
		"the reason":                                 {Handler{Reasons: on(cause.Update)}, update, true},
		"another reason":                             {Handler{Reasons: on(cause.Create)}, update, false},
		"a changed field":                            {Handler{Reasons: on(cause.Update), Change: field}, update, true},
		"an unchanged field":                         {Handler{Reasons: on(cause.Update), Change: field}, still, false},
		"an unchanged field, for a deletion":         {Handler{Reasons: on(cause.Delete), Change: field}, deleted, true},
		"an unchanged field, with AnyMove":           {Handler{Reasons: every, AnyMove: true, Change: field}, deleted, false},
		"resuming":                                   {Handler{Reasons: on(cause.Resume)}, resumed, true},
		"resuming, an unchanged field, with AnyMove": {Handler{Reasons: on(cause.Resume), AnyMove: true, Change: field}, resumed, false},
		"resuming with an update":                    {Handler{Reasons: on(cause.Resume)}, cause.Cause{Reason: cause.Update, Initial: true, New: spec("a")}, true},
		"resuming after the start":                   {Handler{Reasons: on(cause.Resume)}, update, false},
		"resuming with a deletion":                   {Handler{Reasons: on(cause.Resume)}, deleted, false},
		"resuming with a deletion, with Deleted":     {Handler{Reasons: on(cause.Resume), Deleted: true}, deleted, true},
		"a missing field":                            {Handler{Reasons: on(cause.Create), Change: &Change{Path: []string{"x"}}}, cause.Cause{Reason: cause.Create, New: spec("a")}, false},
	}
	for name, c := range cases {
		request := &Request{Body: body(t, spec("b")), Cause: &c.cause}
		if got := c.handler.Matches(request); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
		if got := (Set{&c.handler}).Select(request); (len(got) == 1) != c.want {
			t.Errorf("%s: selected %v", name, got)
		}
	}
}

func TestHandlersAreFilteredByTheObject(t *testing.T) {
	yes, no := func(*Request) bool { return true }, func(*Request) bool { return false }
	labelled := Criteria{Labels: []Key{{Name: "l", Match: Present}}}
	field := &Change{Path: []string{"spec", "f"}, Value: Equal("b")}
	request := &Request{Body: body(t, spec("b")), Cause: &cause.Cause{Reason: cause.Update, Old: spec("x"), New: spec("y")}}
	cases := map[string]struct {
		handler                    Handler
		interested, block, onEvent bool
	}{
		"no filters":              {Handler{}, true, false, true},
		"mandatory":               {Handler{Mandatory: true}, true, true, true},
		"mandatory, but filtered": {Handler{Mandatory: true, Criteria: labelled}, false, false, false},
		"functions":               {Handler{When: []func(*Request) bool{yes, yes}}, true, false, true},
		"a function that rejects": {Handler{When: []func(*Request) bool{yes, no}}, false, false, false},
		"the field of the object": {Handler{Change: field}, false, false, true},
		"another field":           {Handler{Change: &Change{Path: []string{"spec", "g"}}}, false, false, false},
	}
	for name, c := range cases {
		set := Set{&c.handler}
		if set.Interested(request) != c.interested || set.Blocking(request) != c.block || c.handler.MatchesEvent(request) != c.onEvent {
			t.Errorf("%s: got %v, %v, %v, want %+v", name, set.Interested(request), set.Blocking(request), c.handler.MatchesEvent(request), c)
		}
	}
	for name, matches := range map[string]bool{"no filters": true, "functions": true, "a function that rejects": false, "mandatory, but filtered": false} {
		if h := cases[name].handler; h.MatchesObject(request) != matches {
			t.Errorf("%s: the object matches: %t", name, !matches)
		}
	}
	if (Set{}).Interested(request) || (Set{}).Blocking(request) {
		t.Error("an empty set is interested")
	}
}

func TestSetListsIDsFieldsAndFamilies(t *testing.T) {
	a := &Handler{ID: "a", Formerly: []string{"x", "y"}}
	b := &Handler{ID: "b", Family: Events, Change: &Change{Path: []string{"spec", "f"}}}
	set := Set{a, b}
	if got := set.IDs(); !slices.Equal(got, []string{"a", "x", "y", "b"}) {
		t.Errorf("got %q", got)
	}
	if got := set.Fields(); len(got) != 1 || got[0].String() != "spec.f" {
		t.Errorf("got %v", got)
	}
	if got := set.Of(Events); !slices.Equal(got, Set{b}) {
		t.Errorf("got %v", got)
	}
}

func TestNarrowReducesTheDiffToTheField(t *testing.T) {
	c := &cause.Cause{Old: spec("a"), New: spec("b"), Diff: diff.Of(spec("a"), spec("b"))}
	for _, h := range []*Handler{{}, {Change: &Change{}}} {
		if h.Narrow(c) != c {
			t.Error("a cause was narrowed without a field")
		}
	}
	h := &Handler{Change: &Change{Path: []string{"spec", "f"}}}
	narrowed := h.Narrow(c)
	if !slices.Equal(narrowed.Field, []string{"spec", "f"}) || len(narrowed.Diff) != 1 || len(narrowed.Diff[0].Path) != 0 {
		t.Errorf("got %+v", narrowed)
	}
	if len(c.Field) != 0 || len(c.Diff[0].Path) != 2 {
		t.Errorf("the original cause was modified: %+v", c)
	}
}

func TestHandlersOverlap(t *testing.T) {
	mutating, validating := &Admission{Mutating: true}, &Admission{}
	cases := map[string]struct {
		a, b Handler
		want bool
	}{
		"one reason":              {Handler{Reasons: on(cause.Create, cause.Update)}, Handler{Reasons: on(cause.Update)}, true},
		"other reasons":           {Handler{Reasons: on(cause.Create)}, Handler{Reasons: on(cause.Update)}, false},
		"two families":            {Handler{Family: Events}, Handler{Family: Indexing}, false},
		"events":                  {Handler{Family: Events}, Handler{Family: Events}, true},
		"reviews":                 {Handler{Family: Reviews, Admission: mutating}, Handler{Family: Reviews, Admission: mutating}, true},
		"mutating and validating": {Handler{Family: Reviews, Admission: mutating}, Handler{Family: Reviews, Admission: validating}, false},
	}
	for name, c := range cases {
		if got := c.a.Overlaps(&c.b); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestReviewsAreTakenByOperationAndSubresource(t *testing.T) {
	cases := map[string]struct {
		admission              Admission
		operation, subresource string
		want                   bool
	}{
		"any operation":                        {Admission{}, "CREATE", "", true},
		"one of the operations":                {Admission{Operations: []string{"UPDATE", "CREATE"}}, "CREATE", "", true},
		"none of the operations":               {Admission{Operations: []string{"UPDATE"}}, "CREATE", "", false},
		"a deletion":                           {Admission{}, "DELETE", "", true},
		"a deletion, mutating":                 {Admission{Mutating: true}, "DELETE", "", false},
		"a deletion among others, mutating":    {Admission{Mutating: true, Operations: []string{"DELETE", "CREATE"}}, "DELETE", "", false},
		"nothing but deletions, mutating":      {Admission{Mutating: true, Operations: []string{"DELETE"}}, "DELETE", "", true},
		"a creation, mutating":                 {Admission{Mutating: true}, "CREATE", "", true},
		"another subresource":                  {Admission{}, "UPDATE", "status", false},
		"the subresource":                      {Admission{Subresource: "status"}, "UPDATE", "status", true},
		"the object instead of a subresource":  {Admission{Subresource: "status"}, "UPDATE", "", false},
		"all subresources, and the object too": {Admission{Subresource: "*"}, "UPDATE", "", true},
	}
	for name, c := range cases {
		if got := c.admission.Takes(c.operation, c.subresource); got != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestReviewDiff(t *testing.T) {
	old, now := body(t, spec("a")), body(t, spec("b"))
	for name, c := range map[string]struct {
		review Review
		want   diff.Op
	}{
		"a creation": {Review{New: now}, diff.Add}, "an update": {Review{Old: old, New: now}, diff.Change}, "a deletion": {Review{Old: old}, diff.Remove},
	} {
		if got := c.review.Diff(); len(got) != 1 || got[0].Op != c.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestHandlerErrorsWrapTheirCauses(t *testing.T) {
	boom := errors.New("boom")
	for _, err := range []error{&TemporaryError{Err: boom}, &PermanentError{Err: boom}, &UndecodableError{Err: boom}, &DeniedError{Err: boom}} {
		if !errors.Is(err, boom) || err.Error() != "boom" {
			t.Errorf("%T: got %v", err, err)
		}
	}
	if (&UnfinishedError{}).Error() == "" {
		t.Error("an error has no text")
	}
}

func TestSettingsHaveDefaults(t *testing.T) {
	if got := Some(1).Or(2); got != 1 {
		t.Errorf("got %d", got)
	}
	if got := (Opt[int]{}).Or(2); got != 2 {
		t.Errorf("got %d", got)
	}
}

func TestMemosAreKeptByType(t *testing.T) {
	var m Memos
	n := m.Get(reflect.TypeFor[int]()).(*int)
	*n = 5
	if again := m.Get(reflect.TypeFor[int]()).(*int); again != n {
		t.Error("the second call returned another value")
	}
	if s := m.Get(reflect.TypeFor[string]()).(*string); *s != "" {
		t.Errorf("got %q", *s)
	}
}

func TestTheFirstMatchingHandlerOfEachIDIsSelected(t *testing.T) {
	handlers := Set{{ID: "a", Where: "1"}, {ID: "b", Where: "2"}, {ID: "a", Where: "3"}, {ID: "c", Where: "4"}, {ID: "b", Where: "5"}}
	for name, c := range map[string]struct{ without, want string }{
		"all match":                {"", "124"},
		"the first does not match": {"1", "234"},
		"the last does not match":  {"5", "124"},
		"none of an id matches":    {"25", "14"},
	} {
		got := ""
		for _, h := range handlers.SelectBy(func(h *Handler) bool { return !strings.Contains(c.without, h.Where) }) {
			got += h.Where
		}
		if got != c.want {
			t.Errorf("%s: got %s, want %s", name, got, c.want)
		}
	}
}
