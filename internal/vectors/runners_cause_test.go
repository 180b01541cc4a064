package vectors_test

import (
	"context"
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf"
	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/object"
)

const finalizer = "kopf.zalando.org/KopfFinalizerMarker"

func causeDetection(t *testing.T, v vector) {
	c := decode[struct {
		EventType    *string `json:"event_type"`
		Metadata     map[string]any
		Old, New     map[string]any
		Initial      bool
		Reason       cause.Reason
		CauseInitial bool `json:"cause_initial"`
	}](t, v.JSON)
	body, err := object.FromMap(map[string]any{"metadata": c.Metadata})
	if err != nil {
		t.Fatal(err)
	}
	reason, initial := cause.Detect(cause.Facts{
		Gone:     c.EventType != nil && *c.EventType == "DELETED",
		Deleting: body.Deleting,
		Blocked:  slices.Contains(body.Finalizers(), finalizer),
		Known:    c.Old != nil,
		Changed:  len(diff.Of(c.Old, c.New)) > 0,
		Initial:  c.Initial,
	})
	if reason != c.Reason || initial != c.CauseInitial {
		t.Errorf("got %s, initial %v, want %s, %v", reason, initial, c.Reason, c.CauseInitial)
	}
}

// handlerOf makes the handler that a case describes by Kopf's decorator and its
// filters, by declaring it.
func handlerOf(kind string, filters map[string]any) *handler.Handler {
	op := gopf.New()
	r := op.Resource("kopf.dev/v1/kopfexamples")
	for key, value := range stringMap(filters["labels"]) {
		r = r.WithLabel(key, matcherOf(value))
	}
	for key, value := range stringMap(filters["annotations"]) {
		r = r.WithAnnotation(key, matcherOf(value))
	}
	path, about := filters["field"]
	declare(fieldOf(r, path, about, filters), r, kind, about)
	declared := gopf.TestSeam{}.Handlers(op)[0]
	declared.ID = "fn" // without the field
	return declared
}

// fieldOf makes the handle for a field; nil if there is none.
func fieldOf(r *gopf.Resource[gopf.Unstructured], path any, about bool, filters map[string]any) *gopf.FieldResource[gopf.Unstructured] {
	if !about {
		return nil
	}
	var pointer strings.Builder
	for _, key := range kopfPath(path) {
		pointer.WriteString("/" + strings.NewReplacer("~", "~0", "/", "~1").Replace(key))
	}
	field := r.Field(pointer.String())
	if value, given := filters["value"]; given {
		field = field.Value(matcherOf(value))
	}
	old, before := filters["old"]
	now, after := filters["new"]
	if before || after {
		was, is := gopf.Any, gopf.Any
		if before {
			was = matcherOf(old)
		}
		if after {
			is = matcherOf(now)
		}
		field = field.Changed(was, is)
	}
	return field
}

// declare declares a handler as Kopf's decorator of that name does.
func declare(field *gopf.FieldResource[gopf.Unstructured], whole *gopf.Resource[gopf.Unstructured], kind string, about bool) {
	if about {
		whole = &field.Resource
	}
	change := func(context.Context, *gopf.Change[gopf.Unstructured]) error { return nil }
	switch kind {
	case "create":
		whole.OnCreate("fn", change)
	case "update":
		whole.OnUpdate("fn", change)
	case "delete":
		whole.OnDelete("fn", change)
	case "resume":
		whole.OnResume("fn", change)
	case "field":
		field.OnChange("fn", change)
	case "event":
		whole.OnEvent("fn", func(context.Context, *gopf.WatchEvent[gopf.Unstructured]) error { return nil })
	default:
		panic("there is no decorator " + kind)
	}
}

func stringMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func matcherOf(value any) gopf.Matcher {
	switch value {
	case "PRESENT":
		return gopf.Present
	case "ABSENT":
		return gopf.Absent
	}
	if list, ok := stringMap(value)["$in"].([]any); ok {
		return gopf.Matching(func(v any, _ bool) bool {
			return slices.ContainsFunc(list, func(item any) bool { return diff.Equal(item, v) })
		})
	}
	return gopf.Is(value)
}

func filters(t *testing.T, v vector) {
	c := decode[struct {
		HandlerKind string `json:"handler_kind"`
		Filters     map[string]any
		Cause       struct {
			Body, Old, New map[string]any
			Reason         cause.Reason
			Initial        bool
		}
		Prematch *bool
		Selected bool
	}](t, v.JSON)
	body, err := object.FromMap(c.Cause.Body)
	if err != nil {
		t.Fatal(err)
	}
	if c.Cause.Reason == "" {
		c.Cause.Reason = cause.Update
	}
	request := &handler.Request{Body: body, Cause: &cause.Cause{
		Reason: c.Cause.Reason, Initial: c.Cause.Initial, Deleting: body.Deleting,
		Old: c.Cause.Old, New: c.Cause.New,
	}}
	h := handlerOf(c.HandlerKind, c.Filters)
	if c.HandlerKind == "event" {
		if got := h.MatchesEvent(request); got != c.Selected {
			t.Errorf("matches: got %v, want %v", got, c.Selected)
		}
		return
	}
	set := handler.Set{h}
	if got := set.Interested(request); got != *c.Prematch {
		t.Errorf("pre-matches: got %v, want %v", got, *c.Prematch)
	}
	if got := len(set.Select(request)) > 0; got != c.Selected {
		t.Errorf("is selected: got %v, want %v", got, c.Selected)
	}
	if h.Mandatory && set.Blocking(request) != *c.Prematch {
		t.Errorf("asks for the finalizer: got %v, want %v", !*c.Prematch, *c.Prematch)
	}
}
