package expr

import (
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
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
		`object.spec.hosts.map(h, object.spec.hosts).flatten().size()`,
		`object.spec.hosts.slice(0, 200).map(h, object.spec.hosts).flatten().size()`,
		`object.spec.hosts.map(h, [object.spec.hosts]).flatten(2).size()`,
	} {
		template, err := env.Template(map[string]any{"value": "${" + text + "}"})
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = template.Render(t.Context(), vars)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "large") && !errors.Is(err, errCost) {
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

// The limit of the costs bounds the memory of values that are not part of the result.
func TestCopiesOfTextsHaveCosts(t *testing.T) {
	items := make([]any, 3000)
	for i := range items {
		items[i] = "h"
	}
	spec := map[string]any{"hosts": items, "text": strings.Repeat("A,", 150<<10)}
	vars := map[string]any{"object": map[string]any{"spec": spec}}
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for _, copied := range []string{
		`h + object.spec.text`, `bytes(object.spec.text)`, `bytes(object.spec.text) + bytes(h)`, `string(bytes(object.spec.text))`,
		`object.spec.text.replace("A", "B")`, `object.spec.text.lowerAscii()`, `object.spec.text.reverse()`, `object.spec.text.split(",")`,
		`"%s".format([object.spec.text])`, `[object.spec.text].join()`, `base64.encode(bytes(object.spec.text))`, `strings.quote(object.spec.text)`,
	} {
		x, err := env.Compile("object.spec.hosts.map(h, " + copied + ").size()")
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err = x.Eval(t.Context(), vars)
		runtime.ReadMemStats(&after)
		if err == nil || !strings.Contains(err.Error(), "cost limit exceeded") {
			t.Errorf("%s: got the error %v", copied, err)
		}
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 160 {
			t.Errorf("%s: it took %d MiB", copied, used)
		}
	}
}

// A number of an object can be the length of a list. A tiny object must not take megabytes.
func TestTheLengthOfARangeIsLimited(t *testing.T) {
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	x, err := env.Compile(`lists.range(object.n).map(i, "name-" + string(i)).join(",").size()`)
	if err != nil {
		t.Fatal(err)
	}
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	_, err = x.Eval(t.Context(), map[string]any{"object": map[string]any{"n": int64(10_001)}})
	runtime.ReadMemStats(&after)
	if err == nil || !strings.Contains(err.Error(), "lists.range: size 10001 exceeds maximum allowed (10000)") {
		t.Errorf("got the error %v", err)
	}
	if used := after.TotalAlloc - before.TotalAlloc; used > 64<<10 {
		t.Errorf("it took %d KiB", used>>10)
	}
	if got, err := x.Eval(t.Context(), map[string]any{"object": map[string]any{"n": int64(10_000)}}); err != nil || got != int64(98_889) {
		t.Errorf("got %v, %v", got, err)
	}
}

// In a text, a value that is no text becomes JSON, which may be six times as long.
func TestTheTextOfATemplateIsLimited(t *testing.T) {
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	template, err := env.Text("${[object.text]}.${[object.text]}.${[object.text]}")
	if err != nil {
		t.Fatal(err)
	}
	vars := map[string]any{"object": map[string]any{"text": strings.Repeat("\x01", 1<<20)}}
	if _, err := template.Render(t.Context(), vars); err == nil || !strings.Contains(err.Error(), errSize.Error()) {
		t.Errorf("got the error %v", err)
	}
}

// The costs of a call count when it has ended. A call that compares each item of a list with
// all others must not take minutes before.
func TestComparisonsOfLongListsAreRefusedAtOnce(t *testing.T) {
	some, others := make([]any, 60_000), make([]any, 60_000)
	for i := range some {
		some[i], others[i] = fmt.Sprint("a", i), fmt.Sprint("b", i)
	}
	vars := map[string]any{"object": map[string]any{"some": some, "others": others}}
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{
		`object.some.distinct().size() > 0`,
		`sets.contains(object.some, object.some)`,
		`sets.intersects(object.some, object.others)`,
		`sets.equivalent(object.some, object.some)`,
	} {
		x, err := env.CompileBool(text)
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if _, err := x.Bool(t.Context(), vars); err == nil {
			t.Errorf("%s: there is no error", text)
		}
		if took := time.Since(began); took > 10*time.Second {
			t.Errorf("%s: it took %v", text, took)
		}
	}
}

func TestBoundedFunctionsGiveTheSameResults(t *testing.T) {
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]string{
		`"a-b-c".replace("-", "+")`:                                 "a+b+c",
		`"a-b-c".replace("-", "+", 1)`:                              "a+b-c",
		`"a-b-c".replace("-", "+", 0)`:                              "a-b-c",
		`"a-b-c".replace("-", "+", -1)`:                             "a+b+c",
		`"ab".replace("", "-")`:                                     "-a-b-",
		`["a", "b"].join()`:                                         "ab",
		`b"ab"`:                                                     "YWI=",
		`["a", "b"].join(", ")`:                                     "a, b",
		`[].join(", ")`:                                             "",
		`["a", "b", "a"].distinct().join()`:                         "ab",
		`[].distinct().join()`:                                      "",
		`[["a"], ["b", "c"], []].flatten().join()`:                  "abc",
		`string([dyn([dyn("a"), dyn(["b"])])].flatten(1).size())`:   "2",
		`[dyn("a"), dyn([dyn("b"), dyn(["c"])])].flatten(2).join()`: "abc",
		`string([dyn(1), dyn(1.0), dyn(2)].distinct().size())`:      "2",
		`string(sets.contains(["a", "b"], ["a"])) + string(sets.contains(["a"], ["a", "b"])) + string(sets.contains(["a"], []))`:  "truefalsetrue",
		`string(sets.intersects(["a", "b"], ["b"])) + string(sets.intersects(["a"], ["b"])) + string(sets.intersects(["a"], []))`: "truefalsefalse",
		`string(sets.equivalent(["a", "b", "a"], ["b", "a"])) + string(sets.equivalent(["a"], ["b", "a"]))`:                       "truefalse",
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

// A text of the object may decide how numbers are written.
func TestFormattedNumbersHaveCosts(t *testing.T) {
	const n = 100_000
	numbers := make([]any, n)
	for i := range numbers {
		numbers[i] = 1e308
	}
	vars := map[string]any{"object": map[string]any{"form": strings.Repeat("%.99f", n), "numbers": numbers}}
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	for text, refused := range map[string]bool{
		`object.form.format(object.numbers) != ""`:          true,
		`json.encode(object.numbers) != ""`:                 false,
		`"%.2f of %d".format([object.numbers[0], 3]) != ""`: false,
	} {
		x, err := env.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		if _, err = x.Bool(t.Context(), vars); errors.Is(err, errCost) != refused {
			t.Errorf("%s: got the error %v", text, err)
		}
		runtime.ReadMemStats(&after)
		if used := (after.TotalAlloc - before.TotalAlloc) >> 20; used > 64 {
			t.Errorf("%s: it took %d MiB", text, used)
		}
	}
}

// Package json writes < in six bytes. A tenant must not multiply its texts by that.
func TestTextsOfExpressionsAreNotEscaped(t *testing.T) {
	env, err := NewEnv([]string{"object"})
	if err != nil {
		t.Fatal(err)
	}
	template, err := env.Template("list: ${object.list}")
	if err != nil {
		t.Fatal(err)
	}
	got, err := template.Render(t.Context(), map[string]any{"object": map[string]any{"list": []any{"<&>"}}})
	if want := `list: ["<&>"]`; err != nil || got != want {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
}

// Large values are only made for expressions that name them.
func TestVariablesAreMadeWhenTheyAreNeeded(t *testing.T) {
	env, err := NewEnv([]string{"object", "diff"})
	if err != nil {
		t.Fatal(err)
	}
	for text, want := range map[string]int{"object == 1": 0, "diff.size() == 1 && diff[0] == 'a'": 1} {
		made := 0
		vars := map[string]any{"object": int64(1), "diff": func() any { made++; return []any{"a"} }}
		x, err := env.Compile(text)
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			if ok, err := x.Bool(t.Context(), vars); err != nil || !ok {
				t.Errorf("%s: got %v, %v", text, ok, err)
			}
		}
		if made != want {
			t.Errorf("%s: the diff was made %d times, want %d", text, made, want)
		}
	}
}
