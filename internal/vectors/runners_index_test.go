package vectors_test

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"testing"

	"gopf.dev/gopf/internal/handler"
	"gopf.dev/gopf/internal/index"
	"gopf.dev/gopf/internal/object"
)

type indexingStep struct {
	Op, Object string
	Outcomes   map[string]indexingOutcome
	Indices    map[string][][2]any // pairs of a key and its values
}

type indexingOutcome struct {
	Result json.RawMessage
	Error  bool
}

// indexing judges one step of a sequence, after all steps before it.
func indexing(t *testing.T, v vector) {
	indices, all := map[string]*index.Index[any, any]{}, &index.Indexers{}
	var step indexingStep // the one being done
	steps := decode[[]indexingStep](t, v.File[v.Part])
	for _, s := range steps {
		for _, id := range slices.Concat(slices.Collect(maps.Keys(s.Outcomes)), slices.Collect(maps.Keys(s.Indices))) {
			if indices[id] == nil {
				indices[id] = index.New[any, any]()
				all.Functions = append(all.Functions, index.Function{Into: indices[id], Handler: indexer(t, id, &step)})
			}
		}
	}
	for _, step = range steps[:v.Index+1] {
		body, err := object.FromMap(map[string]any{"metadata": map[string]any{"uid": step.Object}})
		if err != nil {
			t.Fatal(err)
		}
		if step.Op == "discard" {
			all.Remove(body.Key())
		} else {
			all.Update(t.Context(), func() *handler.Request {
				return &handler.Request{Body: body, Log: slog.New(slog.DiscardHandler)}
			})
		}
	}
	for id, x := range indices {
		want, got := map[string][]string{}, map[string][]string{}
		for _, pair := range step.Indices[id] {
			for _, value := range pair[1].([]any) {
				put(t, want, pair[0], value)
			}
		}
		for key, value := range x.All() {
			put(t, got, key, value)
		}
		if !sameValues(want, got) || x.Len() != len(want) {
			t.Errorf("%s: got %v, want %v", id, got, want)
		}
	}
}

// indexer is an index function that does what the step says. One without an
// outcome does not match.
func indexer(t *testing.T, id string, step *indexingStep) *handler.Handler {
	return &handler.Handler{
		ID: id,
		When: []func(*handler.Request) bool{func(*handler.Request) bool {
			_, found := step.Outcomes[id]
			return found
		}},
		Call: func(_ context.Context, req *handler.Request) error {
			outcome := step.Outcomes[id]
			if outcome.Error {
				return &handler.TemporaryError{Err: errors.New("oops")}
			}
			// Rule 21: nothing being returned keeps the values in Kopf; here it is said.
			if outcome.Result == nil || string(outcome.Result) == "null" {
				return index.Keep
			}
			req.Result = indexed(decode[any](t, outcome.Result))
			return nil
		},
	}
}

// indexed is what a function in Go returns for what one in Python returns: it
// always is a map. What has no keys is under one that all objects share, as it
// is in the index of a collection.
func indexed(result any) map[any]any {
	fields, ok := result.(map[string]any)
	if !ok {
		return map[any]any{nil: result}
	}
	values := map[any]any{}
	for key, value := range fields {
		values[key] = value
	}
	return values
}

// put adds a value under its key, both as JSON.
func put(t *testing.T, into map[string][]string, key, value any) {
	t.Helper()
	k, err1 := json.Marshal(key)
	v, err2 := json.Marshal(value)
	if err := errors.Join(err1, err2); err != nil {
		t.Fatal(err)
	}
	into[string(k)] = append(into[string(k)], string(v))
}

// sameValues compares with no regard to the order, which means nothing.
func sameValues(want, got map[string][]string) bool {
	if len(want) != len(got) {
		return false
	}
	for key := range want {
		if !slices.Equal(slices.Sorted(slices.Values(want[key])), slices.Sorted(slices.Values(got[key]))) {
			return false
		}
	}
	return true
}
