package vectors_test

import (
	"slices"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
)

func fieldPath(t *testing.T, v vector) {
	c := decode[struct {
		Field any
		Path  []string
	}](t, v.JSON)
	if got := kopfPath(c.Field); !slices.Equal(c.Path, got) {
		t.Errorf("got %q, want %q", got, c.Path)
	}
}

func fieldResolution(t *testing.T, v vector) {
	c := decode[struct {
		D, Field, Value any
		Found           bool
	}](t, v.JSON)
	got, found := jsonvalue.Lookup(c.D, kopfPath(c.Field)...)
	if found != c.Found || !diff.Equal(c.Value, got) {
		t.Errorf("got %v, %v, want %v, %v", got, found, c.Value, c.Found)
	}
}

func fieldRemoval(t *testing.T, v vector) {
	c := decode[struct {
		D, Result map[string]any
		Field     any
		Error     string
	}](t, v.JSON)
	err := jsonvalue.Remove(c.D, kopfPath(c.Field)...)
	if (err != nil) != (c.Error != "") {
		t.Fatalf("error: got %v, want %q", err, c.Error)
	}
	if err == nil && !diff.Equal(c.Result, c.D) {
		t.Errorf("got %v, want %v", c.D, c.Result)
	}
}

// kopfPath reads a field as Kopf has it in code: nothing, a dotted string, or a
// list of keys.
func kopfPath(field any) jsonvalue.Path {
	switch field := field.(type) {
	case string:
		return jsonvalue.SplitPath(field)
	case []any:
		path := make(jsonvalue.Path, len(field))
		for i, key := range field {
			path[i] = key.(string)
		}
		return path
	}
	return nil
}
