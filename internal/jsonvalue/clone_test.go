package jsonvalue

import (
	"reflect"
	"testing"
)

func TestCloneIsADeepCopy(t *testing.T) {
	original := func() map[string]any {
		return map[string]any{"a": map[string]any{"b": []any{"c", map[string]any{"d": 1.5}}}, "e": true, "f": nil}
	}
	given := original()
	clone, ok := Clone(given).(map[string]any)
	if !ok || !reflect.DeepEqual(clone, original()) {
		t.Fatalf("got %v", clone)
	}
	list := clone["a"].(map[string]any)["b"].([]any)
	list[0] = "changed"
	list[1].(map[string]any)["d"] = "changed"
	delete(clone, "e")
	if !reflect.DeepEqual(given, original()) {
		t.Errorf("modifying the clone modified the original: %v", given)
	}
}
