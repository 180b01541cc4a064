package patch

import (
	"slices"
	"strings"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/jsonvalue"
	"gopf.dev/gopf/internal/test/scaling"
)

func decoded(t testing.TB, text string) any {
	t.Helper()
	v, err := jsonvalue.Decode([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestListItemsComeFromEqualOnesThenFromTheirNamesThenFromTheirPlaces(t *testing.T) {
	for _, c := range []struct {
		before, after string
		want          []int
	}{
		{`[1,2,3]`, `[3,1,2]`, []int{2, 0, 1}},
		{`[1,1]`, `[1,1,1]`, []int{0, 1, -1}},
		{`[1,2]`, `[1,3]`, []int{0, 1}},
		{`[1,2]`, `[3]`, []int{-1}},
		{`[{"name":"a","x":1},{"name":"b"}]`, `[{"name":"b"},{"name":"a","x":2}]`, []int{1, 0}},
		{`[{"name":"a"},{"name":"a","x":1}]`, `[{"name":"a","x":1},{"name":"a","x":2}]`, []int{1, 0}},
		{`[{"name":"a"}]`, `[{"name":"b"}]`, []int{-1}},
		{`[{"x":1}]`, `[{"name":"b"}]`, []int{-1}},
		{`[{"x":1},{"x":2}]`, `[{"x":2},{"x":3}]`, []int{1, -1}},
		{`[{"x":1},{"x":2}]`, `[{"x":1},{"x":3}]`, []int{0, 1}},
		{`[{"x":{"a":1,"b":2}}]`, `[{"x":{"b":2,"a":1}}]`, []int{0}},
		{`[]`, `[1]`, []int{-1}},
		{`[1]`, `[]`, nil},
	} {
		got := sources(decoded(t, c.before).([]any), decoded(t, c.after).([]any))
		if !slices.Equal(got, c.want) {
			t.Errorf("%s to %s: got %v, want %v", c.before, c.after, got, c.want)
		}
	}
}

func TestRebasedFieldsKeepWhatTheTypeLacks(t *testing.T) {
	for _, c := range []struct{ raw, before, after, want string }{
		{`{"a":1,"more":2}`, `{"a":1}`, `{"a":1}`, `{"a":1,"more":2}`},
		{`{"a":1,"more":2}`, `{"a":1}`, `{}`, `{"more":2}`},
		{`{"a":1,"more":2}`, `{"a":1,"zero":0}`, `{"a":3,"zero":0}`, `{"a":3,"more":2}`},
		{`{"a":{"b":1,"more":2}}`, `{"a":{"b":1}}`, `{"a":{"b":2}}`, `{"a":{"b":2,"more":2}}`},
		{`{"l":[{"b":1,"more":2},{"b":2,"more":3}]}`, `{"l":[{"b":1},{"b":2}]}`, `{"l":[{"b":2},{"b":1}]}`, `{"l":[{"b":2,"more":3},{"b":1,"more":2}]}`},
		{`{"l":[{"b":1,"more":2}]}`, `{"l":[{"b":1}]}`, `{"l":[{"b":5}]}`, `{"l":[{"b":5,"more":2}]}`},
		{`{"l":[{"more":2}]}`, `{"l":[{"b":0}]}`, `{"l":[{"b":0}]}`, `{"l":[{"more":2}]}`},
		{`{"l":1}`, `{"l":[]}`, `{"l":[1]}`, `{"l":[1]}`},
		{`{"more":2}`, `{"zero":false}`, `{"zero":true}`, `{"zero":true,"more":2}`},
		{`{"more":2}`, `{"list":null}`, `{"list":[1]}`, `{"list":[1],"more":2}`},
		{`{"more":2}`, `{"in":{"a":0,"b":0}}`, `{"in":{"a":1,"b":0}}`, `{"in":{"a":1},"more":2}`},
		{`{"more":2}`, `{"in":{"a":0}}`, `{"in":{"a":0}}`, `{"more":2}`},
		{`{"l":[{"more":2}]}`, `{"l":[{"b":0,"c":0}]}`, `{"l":[{"b":1,"c":0}]}`, `{"l":[{"b":1,"more":2}]}`},
	} {
		if got := Rebase(decoded(t, c.raw), decoded(t, c.before), decoded(t, c.after)); !diff.Equal(got, decoded(t, c.want)) {
			t.Errorf("%s from %s to %s: got %v, want %s", c.raw, c.before, c.after, got, c.want)
		}
	}
}

// Clients of the cluster choose how long the lists are that a handler edits, and how deep.
func TestRebasesTakeLinearTime(t *testing.T) {
	scaling.Check(t, 500, func(n int) {
		list := func(from int) any {
			items := make([]any, n)
			for i := range items {
				items[i] = map[string]any{"x": int64(from + i)}
			}
			return map[string]any{"list": items}
		}
		before := list(0)
		Rebase(before, before, list(n))
		Rebase(before, before, list(1))
	})
	scaling.Check(t, 50, func(levels int) {
		deep := func(leaf string) any {
			const sibling = `"s":[1,2,3,4,5,6,7,8]`
			return decoded(t, strings.Repeat(`{`+sibling+`,"m":`, levels)+leaf+strings.Repeat("}", levels))
		}
		before, after := deep("1"), deep("2")
		Rebase(before, before, after)
	})
	scaling.Check(t, 50, func(levels int) { // of lists
		deep := func(leaf string) any {
			const sibling = `[1,2,3,4,5,6,7,8],`
			return decoded(t, strings.Repeat(`[`+sibling, levels)+leaf+strings.Repeat("]", levels))
		}
		before, after := deep("1"), deep("2")
		Rebase(before, before, after)
	})
}
