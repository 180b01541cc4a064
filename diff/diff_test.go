package diff_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"gopf.dev/gopf/diff"
)

func parse(t testing.TB, text string) any {
	t.Helper()
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return v
}

func TestObjectsAreComparedByKey(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		old, new string
		want     diff.Diff
	}{
		"nothing changed": {old: `{"a": {"b": [1, null]}}`, new: `{"a": {"b": [1, null]}}`},
		"creation is one item": {old: `null`, new: `{"spec": {}}`, want: diff.Diff{
			{Op: diff.Add, New: map[string]any{"spec": map[string]any{}}},
		}},
		"deletion is one item": {old: `{"a": 1}`, new: `null`, want: diff.Diff{
			{Op: diff.Remove, Old: map[string]any{"a": 1.0}},
		}},
		"an added subtree is one item": {old: `{"a": {}}`, new: `{"a": {"b": {"c": 1}}}`, want: diff.Diff{
			{Op: diff.Add, Path: []string{"a", "b"}, New: map[string]any{"c": 1.0}},
		}},
		"lists are whole": {old: `{"a": [1, {"x": 1}]}`, new: `{"a": [1, {"x": 2}]}`, want: diff.Diff{
			{Op: diff.Change, Path: []string{"a"},
				Old: []any{1.0, map[string]any{"x": 1.0}}, New: []any{1.0, map[string]any{"x": 2.0}}},
		}},
		"another type is a change": {old: `{"a": {"b": 1}}`, new: `{"a": "s"}`, want: diff.Diff{
			{Op: diff.Change, Path: []string{"a"}, Old: map[string]any{"b": 1.0}, New: "s"},
		}},
		"null is absent": {old: `{"a": null, "b": {"x": null}}`, new: `{"b": {}}`},
		"null to value": {old: `{"a": null}`, new: `{"a": 1}`, want: diff.Diff{
			{Op: diff.Add, Path: []string{"a"}, New: 1.0},
		}},
		"null in lists counts": {old: `[null]`, new: `[]`, want: diff.Diff{
			{Op: diff.Change, Old: []any{nil}, New: []any{}},
		}},
		"truth is not one": {old: `{"a": true}`, new: `{"a": 1}`, want: diff.Diff{
			{Op: diff.Change, Path: []string{"a"}, Old: true, New: 1.0},
		}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, diff.Of(parse(t, tc.old), parse(t, tc.new))); diff != "" {
				t.Errorf("-want, +got:\n%s", diff)
			}
		})
	}
}

func TestOrderIsAddedRemovedCommonAndSorted(t *testing.T) {
	t.Parallel()
	old := parse(t, `{"r2": 1, "r1": 1, "c2": 1, "c1": {"z": 1, "k": 1}}`)
	new := parse(t, `{"a2": 1, "a1": 1, "c2": 2, "c1": {"y": 1, "k": 2}}`)
	want := "add a1: 1; add a2: 1; remove r1: 1; remove r2: 1; " +
		"add c1.y: 1; remove c1.z: 1; change c1.k: 1 -> 2; change c2: 1 -> 2"
	for range 20 { // the order of Go's maps is random
		if got := diff.Of(old, new).String(); got != want {
			t.Fatalf("got  %s\nwant %s", got, want)
		}
	}
}

func TestLeftIgnoresKeysThatOnlyNewHas(t *testing.T) {
	t.Parallel()
	patch := parse(t, `{"metadata": {"labels": {"gone": null, "kept": "x"}}, "spec": {"a": 1}}`)
	cases := map[string]struct{ object, want string }{
		"all as asked":            {object: `{"metadata": {"name": "n", "labels": {"kept": "x"}}, "spec": {"a": 1, "b": 2}}`, want: ""},
		"removed one is back":     {object: `{"metadata": {"labels": {"kept": "x", "gone": "y"}}, "spec": {"a": 1}}`, want: `add metadata.labels.gone: "y"`},
		"value is lost":           {object: `{"metadata": {"labels": {"kept": "x"}}, "spec": {}}`, want: `remove spec.a: 1`},
		"value is another":        {object: `{"metadata": {"labels": {"kept": "x"}}, "spec": {"a": 3}}`, want: `change spec.a: 1 -> 3`},
		"whole stanza is missing": {object: `{"spec": {"a": 1}}`, want: `remove metadata: {"labels":{"gone":null,"kept":"x"}}`},
	}
	for name, tc := range cases {
		if got := diff.Left(patch, parse(t, tc.object)).String(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestAtReducesTheDiffToAField(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		old, new string
		path     []string
		want     string
	}{
		"no path":                      {old: `{"a": 1}`, new: `{"a": 2}`, want: "change a: 1 -> 2"},
		"exactly there":                {old: `{"s": {"f": 1, "g": 1}}`, new: `{"s": {"f": 2, "g": 2}}`, path: []string{"s", "f"}, want: "change: 1 -> 2"},
		"below":                        {old: `{"s": {"f": 1, "g": 1}}`, new: `{"s": {"f": 2, "g": 2}}`, path: []string{"s"}, want: "change f: 1 -> 2; change g: 1 -> 2"},
		"inside of an added whole":     {old: `null`, new: `{"s": {"f": {"x": 1}}}`, path: []string{"s", "f"}, want: `add: {"x":1}`},
		"inside of a removed whole":    {old: `{"s": {"f": 1}}`, new: `{}`, path: []string{"s", "f"}, want: "remove: 1"},
		"inside of a changed whole":    {old: `{"s": {"f": 1}}`, new: `{"s": "text"}`, path: []string{"s", "f"}, want: "remove: 1"},
		"absent from an added whole":   {old: `{}`, new: `{"s": {"g": 1}}`, path: []string{"s", "f"}, want: ""},
		"elsewhere":                    {old: `{"s": {"g": 1}}`, new: `{"s": {"g": 2}}`, path: []string{"s", "f"}, want: ""},
		"lists are not entered":        {old: `{"s": [1]}`, new: `{"s": [2]}`, path: []string{"s", "0"}, want: ""},
		"a longer key is another path": {old: `{"spec": 1}`, new: `{"spec": 2}`, path: []string{"spe"}, want: ""},
	}
	for name, tc := range cases {
		if got := diff.Of(parse(t, tc.old), parse(t, tc.new)).At(tc.path...).String(); got != tc.want {
			t.Errorf("%s: got %q, want %q", name, got, tc.want)
		}
	}
}

func TestPathsOfItemsAreIndependent(t *testing.T) {
	t.Parallel()
	found := diff.Of(parse(t, `{"a": {"b": {"c": 1, "d": 1}}}`), parse(t, `{"a": {"b": {"c": 2, "d": 2}}}`))
	_ = append(found[0].Path, "x")
	found[0].Path[0] = "changed"
	if want := []string{"a", "b", "d"}; !cmp.Equal(want, found[1].Path) {
		t.Errorf("got %v, want %v", found[1].Path, want)
	}
}

func TestEqualValuesAllocateNothing(t *testing.T) {
	old := parse(t, `{"a": {"b": [1, 2, {"c": "d"}], "n": null}, "t": true}`)
	new := parse(t, `{"a": {"b": [1, 2, {"c": "d"}], "n": null}, "t": true}`)
	if n := testing.AllocsPerRun(100, func() { diff.Of(old, new) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestLongTextsEndWithTheNumberOfOtherDifferences(t *testing.T) {
	old, now := map[string]any{}, map[string]any{}
	for i := range 10_000 {
		now[fmt.Sprintf("field%05d", i)] = 1
	}
	text := diff.Of(old, now).String()
	if most := 64<<10 + 100; len(text) > most {
		t.Errorf("%d bytes, want at most %d", len(text), most)
	}
	shown, rest := strings.Count(text, "add "), 0
	if _, err := fmt.Sscanf(text[strings.LastIndex(text, ";"):], "; and %d more", &rest); err != nil || shown+rest != 10_000 {
		t.Errorf("%d shown, %d more: %v", shown, rest, err)
	}
}
