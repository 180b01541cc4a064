package admission

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/kind"
	"gopf.dev/gopf/webhook"
)

var ourOwn = Own{Account: "us", Finalizer: "ours/finalizer", Former: []string{"formerly/ours"}, Prefixes: []string{"ours.example.com"}, Keys: []string{"kopf"}}

// change merges fields into an object; nil removes a field.
func change(object map[string]any, with map[string]any) map[string]any {
	changed := map[string]any{}
	for key, v := range object {
		changed[key] = v
	}
	for key, v := range with {
		inner, deep := v.(map[string]any)
		old, _ := changed[key].(map[string]any)
		switch {
		case v == nil:
			delete(changed, key)
		case deep:
			changed[key] = change(old, inner)
		default:
			changed[key] = v
		}
	}
	return changed
}

type tree = map[string]any

func metadata(of tree) tree { return tree{"metadata": of} }

// both merges two changes.
func both(a, b tree) tree {
	joined := tree{}
	for key, v := range a {
		joined[key] = v
	}
	for key, v := range b {
		inner, deep := v.(tree)
		if first, too := joined[key].(tree); deep && too {
			v = both(first, inner)
		}
		joined[key] = v
	}
	return joined
}

func TestOwnRecordsAndReleasedFinalizersAreExempt(t *testing.T) {
	live := tree{
		"apiVersion": "kopf.dev/v1", "kind": "KopfExample",
		"metadata": tree{
			"name": "x", "uid": "u1", "resourceVersion": "1", "generation": 1.0, "finalizers": []any{"a/b", "ours/finalizer", "c/d"},
			"labels": tree{"l": "1"}, "annotations": tree{"ours.example.com/r": "1", "other": "1"},
			"managedFields": []any{tree{"manager": "m"}},
		},
		"spec": tree{"field": "value"}, "status": tree{"kopf": tree{"progress": 1.0}, "phase": "ready"},
	}
	dying := change(live, metadata(tree{"deletionTimestamp": "2020-01-01T00:00:00Z"}))
	released := metadata(tree{"finalizers": []any{"a/b", "c/d"}})
	managed := metadata(tree{"managedFields": []any{tree{"manager": "another"}}})
	recorded := metadata(tree{"annotations": tree{"ours.example.com/r": "2", "ours.example.com/s": "1"}})
	spec := tree{"spec": tree{"field": "slipped"}}
	for name, c := range map[string]struct {
		old         tree
		with        tree
		user        string
		subresource string
		exempt      bool
	}{
		"a finalizer is removed in a deletion":              {dying, released, "others", "", true},
		"with its managed fields":                           {dying, both(released, managed), "others", "", true},
		"all finalizers are removed in a deletion":          {dying, metadata(tree{"finalizers": nil}), "others", "", true},
		"all finalizers are removed, and the list stays":    {dying, metadata(tree{"finalizers": []any{}}), "others", "", true},
		"a finalizer is removed without a deletion":         {live, released, "others", "", false},
		"a finalizer is replaced in a deletion":             {dying, metadata(tree{"finalizers": []any{"a/b", "e/f"}}), "others", "", false},
		"a finalizer is added in a deletion":                {dying, metadata(tree{"finalizers": []any{"a/b", "ours/finalizer", "c/d", "e/f"}}), "others", "", false},
		"finalizers are reordered in a deletion":            {dying, metadata(tree{"finalizers": []any{"c/d", "a/b"}}), "others", "", false},
		"nothing changes in a deletion":                     {dying, tree{}, "others", "", false},
		"a spec in a deletion":                              {dying, spec, "others", "", false},
		"a spec with a removed finalizer":                   {dying, both(released, spec), "others", "", false},
		"labels with a removed finalizer":                   {dying, both(released, metadata(tree{"labels": tree{"l": "2"}})), "others", "", false},
		"a removed label with a removed finalizer":          {dying, both(released, metadata(tree{"labels": nil})), "others", "", false},
		"owners with a removed finalizer":                   {dying, both(released, metadata(tree{"ownerReferences": []any{tree{"uid": "o"}}})), "others", "", false},
		"annotations with a removed finalizer":              {dying, both(released, recorded), "others", "", false},
		"a status with a removed finalizer":                 {dying, both(released, tree{"status": tree{"kopf": nil}}), "others", "", false},
		"a new field with a removed finalizer":              {dying, both(released, tree{"data": tree{}}), "others", "", false},
		"a removed field with a removed finalizer":          {dying, both(released, tree{"spec": nil}), "others", "", false},
		"a finalizer removed through a subresource":         {dying, released, "others", "finalize", false},
		"our annotations":                                   {live, recorded, "us", "", true},
		"our annotations in a deletion":                     {dying, both(released, recorded), "us", "", true},
		"our first annotations":                             {change(live, metadata(tree{"annotations": nil})), metadata(tree{"annotations": tree{"ours.example.com/r": "1"}}), "us", "", true},
		"our annotations by others":                         {live, recorded, "others", "", false},
		"our annotations by others in a deletion":           {dying, recorded, "others", "", false},
		"our finalizer is added":                            {change(live, released), metadata(tree{"finalizers": []any{"a/b", "c/d", "ours/finalizer"}}), "us", "", true},
		"our finalizer is removed":                          {live, released, "us", "", true},
		"our finalizer is removed by others":                {live, released, "others", "", false},
		"a former finalizer is replaced by ours":            {change(live, metadata(tree{"finalizers": []any{"a/b", "formerly/ours"}})), metadata(tree{"finalizers": []any{"a/b", "ours/finalizer"}}), "us", "", true},
		"a former finalizer is replaced by others":          {change(live, metadata(tree{"finalizers": []any{"formerly/ours"}})), metadata(tree{"finalizers": []any{"ours/finalizer"}}), "others", "", false},
		"a former finalizer and another are removed by us":  {change(live, metadata(tree{"finalizers": []any{"a/b", "formerly/ours"}})), metadata(tree{"finalizers": []any{}}), "us", "", false},
		"another finalizer is removed by us":                {live, metadata(tree{"finalizers": []any{"ours/finalizer", "c/d"}}), "us", "", false},
		"another finalizer is added by us":                  {live, metadata(tree{"finalizers": []any{"a/b", "ours/finalizer", "c/d", "e/f"}}), "us", "", false},
		"our key of the status":                             {live, tree{"status": tree{"kopf": tree{"progress": 2.0}}}, "us", "status", true},
		"our key of the status, which has no endpoint":      {live, both(tree{"status": tree{"kopf": nil}}, metadata(tree{"generation": 2.0})), "us", "", true},
		"our key is the first of the status":                {change(live, tree{"status": nil}), tree{"status": tree{"kopf": tree{}}}, "us", "status", true},
		"our key of the status by others":                   {live, tree{"status": tree{"kopf": nil}}, "others", "status", false},
		"another key of the status":                         {live, tree{"status": tree{"phase": "slipped"}}, "us", "status", false},
		"another key of the status is removed":              {live, tree{"status": tree{"phase": nil}}, "us", "status", false},
		"the status is no object":                           {live, tree{"status": "slipped"}, "us", "status", false},
		"our records, managed fields":                       {live, both(recorded, managed), "us", "", true},
		"nothing":                                           {live, tree{}, "us", "", true},
		"our records and the spec":                          {live, both(recorded, spec), "us", "", false},
		"our records and the spec in a deletion":            {dying, both(recorded, spec), "us", "", false},
		"our records and labels":                            {live, both(recorded, metadata(tree{"labels": tree{"m": "1"}})), "us", "", false},
		"our records and another annotation":                {live, both(recorded, metadata(tree{"annotations": tree{"other": "2"}})), "us", "", false},
		"our records and an annotation of a similar prefix": {live, both(recorded, metadata(tree{"annotations": tree{"ours.example.com.evil/r": "2"}})), "us", "", false},
		"our records and a removed annotation":              {live, both(recorded, metadata(tree{"annotations": tree{"other": nil}})), "us", "", false},
		"our records and owners":                            {live, both(recorded, metadata(tree{"ownerReferences": []any{tree{"uid": "o"}}})), "us", "", false},
		"our records and another name":                      {live, both(recorded, metadata(tree{"name": "y"})), "us", "", false},
		"our records and a new field":                       {live, both(recorded, tree{"data": nil, "extra": 1.0}), "us", "", false},
		"our records through a subresource":                 {live, recorded, "us", "scale", false},
	} {
		t.Run(name, func(t *testing.T) {
			v := newTestReviewer(calling("v", handler.Admission{Subresource: "*"}, func(context.Context, *handler.Request) error {
				return &handler.DeniedError{Err: errors.New("reviewed")}
			}))
			v.Exempt(ourOwn)
			out := answered(t, v, "/v", reviewOf("UPDATE", map[string]any{
				"oldObject": c.old, "object": change(c.old, c.with), "subResource": c.subresource, "userInfo": map[string]any{"username": c.user},
			}))
			if out.Response.Allowed != c.exempt {
				t.Errorf("allowed without a handler: %v", out.Response.Allowed)
			}
		})
	}
}

func TestOtherOperationsAreAlwaysReviewed(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
		return &handler.DeniedError{Err: errors.New("reviewed")}
	}))
	v.Exempt(ourOwn)
	for _, operation := range []string{"CREATE", "DELETE"} {
		if out := answered(t, v, "/v", reviewOf(operation, map[string]any{"userInfo": map[string]any{"username": "us"}})); out.Response.Allowed {
			t.Errorf("%s is allowed without a handler", operation)
		}
	}
}

// Any client that can open a connection can send such a review.
func TestReviewsOfManyFinalizersTakeLittleTime(t *testing.T) {
	v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
		return &handler.DeniedError{Err: errors.New("reviewed")}
	}))
	v.Exempt(ourOwn)
	with := func(name string, n int) tree {
		list := slices.Repeat([]any{name}, n)
		return tree{"metadata": tree{"name": "x", "deletionTimestamp": "2020-01-01T00:00:00Z", "finalizers": list}}
	}
	review, err := json.Marshal(reviewOf("UPDATE", tree{"oldObject": with("a/b", 200_000), "object": with("c/d", 199_999)}))
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan string)
	go func() {
		_, body := ask(t, v, "/v", string(review))
		done <- body
	}()
	select {
	case body := <-done:
		if !strings.Contains(body, "reviewed") {
			t.Errorf("the response is %s", body)
		}
	case <-time.After(30 * time.Second): // a comparison of each with each takes 10 minutes
		t.Fatal("the review is still being compared")
	}
}

func TestWithoutAnAccountOwnWritesAreReviewed(t *testing.T) {
	own := ourOwn
	own.Account = ""
	v := newTestReviewer(calling("v", handler.Admission{}, func(context.Context, *handler.Request) error {
		return &handler.DeniedError{Err: errors.New("reviewed")}
	}))
	v.Exempt(own)
	if out := answered(t, v, "/v", reviewOf("UPDATE", map[string]any{"userInfo": map[string]any{"username": ""}})); out.Response.Allowed {
		t.Error("a user with an empty name counts as the operator")
	}
	if got := own.Conditions(); len(got) != 1 {
		t.Errorf("conditions: %v", got)
	}
}

func TestWebhooksForUpdatesHaveMatchConditions(t *testing.T) {
	p := Plan{
		Managed: "auto.kopf.dev", Resources: []kind.Info{examples}, Server: webhook.ClientConfig{URL: "https://host"}, Conditions: ourOwn.Conditions(),
		Handlers: handler.Set{
			validating("all", "kopfexamples", handler.Admission{}),
			validating("updates", "kopfexamples", handler.Admission{Operations: []string{"CREATE", "UPDATE"}}),
			validating("deletions", "kopfexamples", handler.Admission{Operations: []string{"DELETE"}}),
		},
	}
	var names []string
	for _, e := range p.Entries(false) {
		conditions, _ := e["matchConditions"].([]any)
		for _, c := range conditions {
			names = append(names, c.(map[string]any)["name"].(string))
		}
		names = append(names, e["name"].(string))
	}
	want := []string{notReleased, notOwn, "all.auto.kopf.dev", notReleased, notOwn, "updates.auto.kopf.dev", "deletions.auto.kopf.dev"}
	if !slices.Equal(names, want) {
		t.Errorf("got %q", names)
	}
	for _, c := range ourOwn.Conditions() {
		if c := c.(map[string]any); strings.Contains(c["expression"].(string), "\n") {
			t.Errorf("a line break in %v", c)
		}
	}
}
