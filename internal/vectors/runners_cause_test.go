package vectors_test

import (
	"slices"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/cause"
	"gopf.dev/gopf/internal/filter"
	"gopf.dev/gopf/internal/object"
	"gopf.dev/gopf/internal/registry"
)

const finalizer = "kopf.zalando.org/KopfFinalizerMarker"

func causeDetection(t *testing.T, v vector) {
	c := decode[struct {
		EventType *string `json:"event_type"`
		Metadata  struct {
			DeletionTimestamp *string
			Finalizers        []string
		}
		Old, New     map[string]any
		Initial      bool
		Reason       cause.Reason
		CauseInitial bool `json:"cause_initial"`
	}](t, v.JSON)
	reason, initial := cause.Detect(cause.Facts{
		Gone:     c.EventType != nil && *c.EventType == "DELETED",
		Deleting: c.Metadata.DeletionTimestamp != nil,
		Blocked:  slices.Contains(c.Metadata.Finalizers, finalizer),
		Known:    c.Old != nil,
		Changed:  len(diff.Of(c.Old, c.New)) > 0,
		Initial:  c.Initial,
	})
	if reason != c.Reason || initial != c.CauseInitial {
		t.Errorf("got %s, initial %v, want %s, %v", reason, initial, c.Reason, c.CauseInitial)
	}
}

// handlerOf makes the handler that a case describes by Kopf's decorator and its
// filters.
func handlerOf(kind string, filters map[string]any) *registry.Handler {
	all := map[cause.Reason]bool{cause.Create: true, cause.Update: true, cause.Delete: true, cause.Resume: true}
	h := &registry.Handler{ID: "fn", Reasons: map[cause.Reason]bool{cause.Reason(kind): true}}
	if kind == "field" {
		h.Reasons, h.AnyMove = all, true
	}
	h.Mandatory = kind == "delete"
	for key, value := range stringMap(filters["labels"]) {
		h.Criteria.Labels = append(h.Criteria.Labels, filter.Key{Name: key, Match: matcherOf(value)})
	}
	for key, value := range stringMap(filters["annotations"]) {
		h.Criteria.Annotations = append(h.Criteria.Annotations, filter.Key{Name: key, Match: matcherOf(value)})
	}
	path, about := filters["field"]
	if !about {
		return h
	}
	h.Change = &filter.Change{Path: kopfPath(path)}
	for name, into := range map[string]*filter.Matcher{"value": &h.Change.Value, "old": &h.Change.Old, "new": &h.Change.New} {
		if value, given := filters[name]; given {
			*into = matcherOf(value)
		}
	}
	if kind == "event" { // those look at objects, not at changes of them
		match := h.Change.Value
		if match == nil {
			match = filter.Present
		}
		h.Criteria.Fields = []filter.Field{{Path: h.Change.Path, Match: match}}
		h.Change = nil
	}
	return h
}

func stringMap(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func matcherOf(value any) filter.Matcher {
	switch value {
	case "PRESENT":
		return filter.Present
	case "ABSENT":
		return filter.Absent
	}
	if list, ok := stringMap(value)["$in"].([]any); ok {
		return func(v any, _ bool) bool {
			return slices.ContainsFunc(list, func(item any) bool { return diff.Equal(item, v) })
		}
	}
	return filter.Equal(value)
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
	request := &registry.Request{Body: body, Cause: &cause.Cause{
		Reason: c.Cause.Reason, Initial: c.Cause.Initial, Deleting: body.Deleting,
		Old: c.Cause.Old, New: c.Cause.New,
	}}
	h := handlerOf(c.HandlerKind, c.Filters)
	if c.HandlerKind == "event" {
		if got := h.Criteria.Match(body); got != c.Selected {
			t.Errorf("matches: got %v, want %v", got, c.Selected)
		}
		return
	}
	set := registry.Set{h}
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
