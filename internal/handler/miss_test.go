package handler

import (
	"testing"

	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/kind"
)

func TestExplanationsHaveBothValues(t *testing.T) {
	body, err := object.Parse([]byte(`{"metadata":{"name":"n","labels":{"tier":"dev"},"annotations":{"note":"x"}},"spec":{"size":3},"data":{"password":"c2VjcmV0"}}`))
	if err != nil {
		t.Fatal(err)
	}
	essence := func(size any) map[string]any {
		if size == nil {
			return map[string]any{"spec": map[string]any{}}
		}
		return map[string]any{"spec": map[string]any{"size": size}}
	}
	update := &cause.Cause{Reason: cause.Update, Old: essence(int64(3)), New: essence(int64(5))}
	on := func(reasons ...cause.Reason) *Handler {
		h := &Handler{ID: "h", Reasons: map[cause.Reason]bool{}}
		for _, r := range reasons {
			h.Reasons[r] = true
		}
		return h
	}
	with := func(change func(*Handler)) *Handler {
		h := on(cause.Update)
		change(h)
		return h
	}
	field := func(c Change) *Handler {
		c.Path = []string{"spec", "size"}
		return with(func(h *Handler) { h.Change = &c })
	}
	one := Equal(int64(1))
	for name, c := range map[string]struct {
		handler *Handler
		cause   *cause.Cause
		want    Criterion
		text    string
	}{
		"it matches":            {on(cause.Update), update, Met, ""},
		"another reason":        {on(cause.Delete, cause.Create), update, OfReason, "it is declared for create, delete, the reason is update"},
		"a deleted one resumes": {on(cause.Resume), &cause.Cause{Reason: cause.Delete, Initial: true, Deleting: true}, OfReason, "it is declared for resume, and the object is being deleted"},
		"the same value":        {field(Change{}), &cause.Cause{Reason: cause.Update, Old: essence(int64(3)), New: essence(int64(3))}, OfMove, "spec.size has not changed"},
		"a former value":        {field(Change{Old: one, Want: Wants{Old: "1"}}), update, OfOldValue, "the former spec.size is 3, the handler requires 1"},
		"a new value":           {field(Change{New: one, Want: Wants{New: "1"}}), update, OfNewValue, "the new spec.size is 5, the handler requires 1"},
		"neither value":         {field(Change{Value: one, Want: Wants{Value: "1"}}), update, OfValue, "the former spec.size is 3, the handler requires 1; the new one is 5"},
		"the selector": {with(func(h *Handler) { h.Select, h.Criteria.Selector = "tier=prod", selector(t, "tier=prod") }), update, OfSelector,
			`the labels do not match the selector "tier=prod"`},
		"a label": {with(func(h *Handler) { h.Criteria.Labels = []Key{{Name: "tier", Match: Equal("prod"), Want: `"prod"`}} }), update, OfLabel, `label tier is "dev", the handler requires "prod"`},
		"an absent label": {with(func(h *Handler) {
			h.Criteria.Labels = []Key{{Name: "tier", Match: Present}, {Name: "zone", Match: Present, Want: "any value"}}
		}), update, OfLabel, "label zone is absent, the handler requires any value"},
		"an annotation": {with(func(h *Handler) { h.Criteria.Annotations = []Key{{Name: "note", Match: Absent, Want: "absent"}} }), update, OfAnnotation, `annotation note is "x", the handler requires absent`},
		"a field":       {with(func(h *Handler) { h.Criteria.Fields = []Field{{Path: []string{"spec", "size"}, Match: one, Want: "1"}} }), update, OfField, "spec.size is 3, the handler requires 1"},
		"a value of a Secret": {with(func(h *Handler) { h.Criteria.Fields = []Field{{Path: []string{"data", "password"}, Match: one}} }), update, OfField,
			`data.password is "(hidden)", the handler requires another value`},
		"a function": {with(func(h *Handler) {
			h.When, h.WhenAt = []func(*Request) bool{func(*Request) bool { return false }}, []string{"main.go:7"}
		}), update, OfFunction, "the function of When at main.go:7 returned false"},
	} {
		r := &Request{Body: body, Cause: c.cause}
		if name == "a value of a Secret" {
			r.Resource = kind.Info{Version: "v1", Kind: "Secret"}
		}
		miss := c.handler.Miss(r)
		if got := c.handler.Explain(miss, r); miss.Criterion != c.want || got != c.text || c.handler.Matches(r) != (c.want == Met) {
			t.Errorf("%s: got %q, %q, want %q, %q", name, miss.Criterion, got, c.want, c.text)
		}
	}
}

func TestLongValuesAreCutInExplanations(t *testing.T) {
	long := make([]byte, 1000)
	for i := range long {
		long[i] = 'x'
	}
	if got := shown(Value{string(long), true}); len(got) > maxShown+len("…") {
		t.Errorf("got %d bytes", len(got))
	}
}
