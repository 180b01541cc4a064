package schema

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gopf.dev/gopf/kind"
)

func TestShapesOfStatuses(t *testing.T) {
	const typed = `{"type": "object", "properties": {"phase": {"type": "string"}, "create": {"type": "object", "properties": {"size": {"type": "integer"}}},
		"free": {"type": "object", "x-kubernetes-preserve-unknown-fields": true},
		"half": {"type": "object", "x-kubernetes-preserve-unknown-fields": true, "properties": {"a": {"type": "object", "properties": {"b": {}}}}},
		"numbers": {"type": "object", "additionalProperties": {"type": "integer"}},
		"list": {"type": "array", "items": {"type": "object", "properties": {"name": {"type": "string"}}}},
		"pod": {"type": "object", "x-kubernetes-embedded-resource": true, "x-kubernetes-preserve-unknown-fields": true},
		"other": {"$ref": "#/components/schemas/Status"}, "lost": {"$ref": "#/components/schemas/Nothing"}}}`
	for _, test := range []struct {
		status, value string
		want          bool
	}{
		{typed, `{}`, true},
		{typed, `{"phase": "Ready"}`, true},
		{typed, `{"phase": null}`, true},
		{typed, `{"unknown": null}`, false},
		{typed, `{"unknown": 1}`, false},
		{typed, `{"create": {"size": 1}}`, true},
		{typed, `{"create": {"size": 1, "more": true}}`, false},
		{typed, `{"free": {"a": [{"b": 1}]}}`, true},
		{typed, `{"half": {"x": 1, "a": {"b": 1}}}`, true},
		{typed, `{"half": {"x": 1, "a": {"c": 1}}}`, false},
		{typed, `{"numbers": {"a": 1, "b": 2}}`, true},
		{typed, `{"numbers": {"a": {"b": 1}}}`, false},
		{typed, `{"list": [{"name": "a"}, {"name": "b"}]}`, true},
		{typed, `{"list": [{"name": "a"}, {"size": 1}]}`, false},
		{typed, `{"pod": {"metadata": {"name": "x"}}}`, false},
		{typed, `{"other": {"a": {"b": 1}}}`, true},
		{typed, `{"lost": {"a": 1}}`, false},
		{`{"type": "object", "x-kubernetes-preserve-unknown-fields": true}`, `{"a": {"b": [1, {"c": null}]}}`, true},
		{`{"type": "object", "additionalProperties": true}`, `{"a": {"b": 1}}`, true},
		{`{"type": "object"}`, `{"a": 1}`, false},
		{`{"type": "array", "items": {"type": "string"}}`, `{"a": 1}`, false},
	} {
		k := &Keeper{API: &api{documents: withStatus(test.status, "1")}, Key: "op"}
		k.Keeping(t.Context(), []kind.Info{databases})
		var value map[string]any
		if err := json.Unmarshal([]byte(test.value), &value); err != nil {
			t.Fatal(err)
		}
		if got := k.Status(databases.GVR()).Keeps(value); got != test.want {
			t.Errorf("%s: got %t, want %t", test.value, got, test.want)
		}
	}
}

func TestShapesOfUnknownKindsAndValues(t *testing.T) {
	var unknown *Shape
	if (&Keeper{}).Status(databases.GVR()) != nil || unknown.Keeps(map[string]any{}) || unknown.Keeps(map[string]any{"a": 1.0}) {
		t.Error("an unknown schema keeps a value")
	}
	all := &Shape{all: true}
	if all.Keeps(map[string]any{"a": struct{ B int }{1}}) {
		t.Error("a value of an unknown type is kept")
	}
}

// A schema can refer to itself only in theory: the API server refuses such definitions.
func TestShapesOfLargeAndCyclicSchemasAreBounded(t *testing.T) {
	var properties []string
	for i := range 2 * maxShape {
		properties = append(properties, fmt.Sprintf(`"p%d": {"type": "string"}`, i))
	}
	d := document{
		"Cycle": []byte(`{"type": "object", "properties": {"again": {"$ref": "#/components/schemas/Cycle"}}}`),
	}
	for _, status := range []string{`{"type": "object", "properties": {` + strings.Join(properties, ",") + `}}`, `{"$ref": "#/components/schemas/Cycle"}`} {
		left := maxShape
		d.shape([]byte(status), &left)
		if left >= 0 {
			t.Errorf("%.40s: %d parts are left", status, left)
		}
	}
}
