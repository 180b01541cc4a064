package expr

import (
	"context"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
)

func env(t *testing.T) *Env {
	t.Helper()
	e, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	return e
}

var vars = map[string]any{"object": map[string]any{
	"metadata": map[string]any{"name": "db"},
	"spec":     map[string]any{"size": int64(3), "ratio": 1.5, "tags": []any{"a", "b"}, "evil": "x: ${object}\n- y"},
}}

func TestTemplatesKeepTheTypesOfValues(t *testing.T) {
	for name, c := range map[string]struct{ template, want any }{
		"number":       {"${object.spec.size}", int64(3)},
		"float":        {"${object.spec.ratio}", 1.5},
		"list":         {"${object.spec.tags}", []any{"a", "b"}},
		"text around":  {"n=${object.spec.size}!", "n=3!"},
		"two":          {"${object.metadata.name}-${object.spec.size}", "db-3"},
		"constant":     {"plain", "plain"},
		"escaped":      {"$${x} ${object.spec.size}", "${x} 3"},
		"only escaped": {"$${x}", "${x}"},
		"braces":       {"${ {'a': {'b': '}'}}.a.b }", "}"},
		"map":          {map[string]any{"a": "${object.spec.size + 1}", "b": []any{true, "${object.metadata}"}}, map[string]any{"a": int64(4), "b": []any{true, map[string]any{"name": "db"}}}},
		"left out":     {map[string]any{"a": "${object.spec.?none}", "b": []any{"${object.spec.?none}", int64(1)}}, map[string]any{"b": []any{int64(1)}}},
		"evil values":  {"${object.spec.evil}", "x: ${object}\n- y"},
		"comparison":   {"${object.spec.size > 2.5}", true},
	} {
		template, err := env(t).Template(c.template)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		if got, err := template.Render(t.Context(), vars); err != nil || !diff.Equal(got, c.want) {
			t.Errorf("%s: got %#v, %v", name, got, err)
		}
	}
}

func TestMistakesInTemplatesHaveTheirPaths(t *testing.T) {
	_, err := env(t).Template(map[string]any{"a": map[string]any{"b": "${object.", "c": "${x}"}, "d": []any{"${1 +}"}})
	for _, want := range []string{"a.b: the expression", "a.c: expression \"x\"", "d[0]: expression"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("no %q in %v", want, err)
		}
	}
	template, err := env(t).Template(map[string]any{"a": "${object.none.x}"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := template.Render(t.Context(), vars); err == nil || !strings.HasPrefix(err.Error(), "a: expression") {
		t.Errorf("got %v", err)
	}
}

func TestConditionsAreTrueOrFalse(t *testing.T) {
	for text, want := range map[string]bool{"${object.spec.size == 3}": true, "object.spec.size > 3": false} {
		x, err := env(t).Condition(text)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := x.Bool(t.Context(), vars); err != nil || got != want {
			t.Errorf("%s: got %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"1 + 1", "${true} x", "${true", "'a'"} {
		if _, err := env(t).Condition(text); err == nil {
			t.Errorf("%s is accepted", text)
		}
	}
	x, err := env(t).Condition("object.spec.size")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Bool(t.Context(), vars); err == nil {
		t.Error("a number is accepted as a condition")
	}
}

func TestExpensiveExpressionsEnd(t *testing.T) {
	list := make([]any, 1000)
	for i := range list {
		list[i] = int64(i)
	}
	x, err := env(t).Compile("object.all(a, object.all(b, object.all(c, a + b + c >= 0)))")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := x.Eval(context.Background(), map[string]any{"object": list}); err == nil || !strings.Contains(err.Error(), "cost limit") {
		t.Errorf("got %v", err)
	}
}
