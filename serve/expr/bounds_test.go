package expr

import (
	"runtime"
	"strings"
	"testing"
)

// A tenant chooses the values of its objects. An expression that repeats one of them for each
// item of another must not take all memory.
func TestExpressionsCannotMultiplyValuesOfAnObjectWithoutLimit(t *testing.T) {
	items := make([]any, 3000)
	for i := range items {
		items[i] = "h"
	}
	spec := map[string]any{"hosts": items, "text": strings.Repeat("a", 300<<10), "config": map[string]any{"list": items}}
	vars := map[string]any{"object": map[string]any{"spec": spec}}
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`object.spec.hosts.map(h, {"host": h, "text": object.spec.text})`,
		`object.spec.hosts.map(h, {"host": h, "config": object.spec.config})`,
		`object.spec.text.replace("a", object.spec.text)`,
		`object.spec.text.replace("", object.spec.text)`,
		`object.spec.text.replace("a", object.spec.text, 100)`,
		`object.spec.hosts.join(object.spec.text)`,
		`object.spec.hosts.map(h, object.spec.text).join()`,
	} {
		template, err := env.Template(map[string]any{"value": "${" + text + "}"})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = template.Render(t.Context(), vars)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "large") {
			t.Errorf("%s: got the error %v", text, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
			t.Errorf("%s: it took %d MiB", text, used)
		}
	}
	many := map[string]any{}
	for _, key := range strings.Split("abcdefghijklmnopqrst", "") {
		many[key] = "${object.spec.text}"
	}
	if template, err := env.Template(many); err != nil {
		t.Error(err)
	} else if _, err := template.Render(t.Context(), vars); err == nil {
		t.Error("a template with 20 large expressions is rendered")
	}
}

func TestBoundedFunctionsGiveTheSameResults(t *testing.T) {
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`"a-b-c".replace("-", "+")`:             "a+b+c",
		`"a-b-c".replace("-", "+", 1)`:          "a+b-c",
		`"a-b-c".replace("-", "+", 0)`:          "a-b-c",
		`"a-b-c".replace("-", "+", -1)`:         "a+b+c",
		`"ab".replace("", "-")`:                 "-a-b-",
		`["a", "b"].join()`:                     "ab",
		`["a", "b"].join(", ")`:                 "a, b",
		`[].join(", ")`:                         "",
		`object.spec.list.join("/")`:            "x/y",
		`object.spec.list[0].replace("x", "z")`: "z",
	} {
		x, err := env.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		vars := map[string]any{"object": map[string]any{"spec": map[string]any{"list": []any{"x", "y"}}}}
		if got, err := x.Eval(t.Context(), vars); err != nil || got != want {
			t.Errorf("%s: got %q (%v), want %q", text, got, err, want)
		}
	}
}
