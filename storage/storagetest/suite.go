package storagetest

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"sync/atomic"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/storage"
)

// ids are realistic ids, and some unusual ones.
var ids = []string{
	"create",
	"create/sub",
	"create/sub/sub.sub",
	"update/spec.field",
	"MixedCase_and-dashes.and.dots",
	"outer.<locals>.inner",
	"обработчик",
	"名前😀",
	"a_name_that_is_longer_than_what_fits_into_the_name_of_an_annotation",
	"a_name_that_is_longer_than_what_fits_into_the_name_of_an_annotation/sub",
	"a_name_that_is_longer_than_what_fits_into_the_name_of_an_annotation.sub",
}

// count makes the objects of all suites different, because a storage may outlive a suite.
var count atomic.Int64

// newBody returns an object without stored state.
func newBody(name string) Body {
	return Body{
		"apiVersion": "storagetest.gopf.dev/v1",
		"kind":       "Example",
		"metadata": map[string]any{
			"name":        name,
			"namespace":   "default",
			"uid":         fmt.Sprintf("00000000-0000-0000-0000-%012d", count.Add(1)),
			"labels":      map[string]any{"app": "demo"},
			"annotations": map[string]any{"note": "keep", "example.com/note": "also keep"},
		},
		"spec":   map[string]any{"size": "1Gi"},
		"status": map[string]any{"phase": "Ready"},
	}
}

// unchanged fails the test if the value changes after this call.
func unchanged(t *testing.T, what string, value map[string]any) {
	t.Helper()
	before := decoded(t, value)
	t.Cleanup(func() {
		if found := diff.Of(before, decoded(t, value)); len(found) > 0 {
			t.Errorf("%s was changed: %s", what, found)
		}
	})
}

// decoded returns a copy of the value, with numbers as in JSON.
func decoded(t *testing.T, value map[string]any) any {
	t.Helper()
	text, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	var read any
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}

func sameRecords(t *testing.T, want, got map[string]storage.Record) {
	t.Helper()
	for _, id := range slices.Sorted(maps.Keys(want)) {
		if record, ok := got[id]; !ok {
			t.Errorf("%s: the record is missing", id)
		} else if !record.Equal(want[id]) {
			t.Errorf("%s: got %s, want %s", id, record.Encode(false), want[id].Encode(false))
		}
	}
	for _, id := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[id]; !ok {
			t.Errorf("%s: unexpected record: %s", id, got[id].Encode(false))
		}
	}
}
