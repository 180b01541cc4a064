package vectors_test

import (
	"slices"
	"testing"

	"gopf.dev/gopf/diff"
)

func diffOf(t *testing.T, v vector) {
	c := decode[struct {
		Scope string
		A, B  any
		Diff  [][]any
	}](t, v.JSON)
	want := items(c.Diff)
	got := scoped(c.Scope, c.A, c.B)
	if sameDiff(want, got) {
		return
	}
	// in Python a truth value is a number. Here it is another value, so that
	// we see more changes, but not fewer, and only between these two.
	if !sameDiff(want, scoped(c.Scope, withoutBools(c.A), withoutBools(c.B))) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
	for _, item := range got {
		_, wasBool := item.Old.(bool)
		_, isBool := item.New.(bool)
		if !slices.ContainsFunc(want, func(i diff.Item) bool { return slices.Equal(i.Path, item.Path) }) && wasBool == isBool {
			t.Errorf("unexpected: %s", item)
		}
	}
}

// scoped has the scope "right" only here: nothing else needs it, and it is
// "left" seen from the other side.
func scoped(scope string, a, b any) diff.Diff {
	switch scope {
	case "left":
		return diff.Left(a, b)
	case "right":
		mirrored := diff.Left(b, a)
		for i, item := range mirrored {
			op := map[diff.Op]diff.Op{diff.Add: diff.Remove, diff.Change: diff.Change, diff.Remove: diff.Add}[item.Op]
			mirrored[i] = diff.Item{Op: op, Path: item.Path, Old: item.New, New: item.Old}
		}
		return mirrored
	}
	return diff.Of(a, b)
}

func diffReduction(t *testing.T, v vector) {
	c := decode[struct {
		A, B    any
		Path    any
		Reduced [][]any
	}](t, v.JSON)
	want := items(c.Reduced)
	if got := diff.Of(c.A, c.B).At(kopfPath(c.Path)...); !sameDiff(want, got) {
		t.Errorf("got  %s\nwant %s", got, want)
	}
}

// items reads a diff as vectors have it: [op, path, old, new] for each item.
func items(list [][]any) diff.Diff {
	var found diff.Diff
	for _, item := range list {
		found = append(found, diff.Item{Op: diff.Op(item[0].(string)), Path: kopfPath(item[1]), Old: item[2], New: item[3]})
	}
	return found
}

// sameDiff compares with no regard to the order, which Kopf leaves undefined.
func sameDiff(want, got diff.Diff) bool {
	byPath := func(a, b diff.Item) int { return slices.Compare(a.Path, b.Path) }
	want, got = slices.SortedFunc(slices.Values(want), byPath), slices.SortedFunc(slices.Values(got), byPath)
	return slices.EqualFunc(want, got, func(a, b diff.Item) bool {
		return a.Op == b.Op && slices.Equal(a.Path, b.Path) && diff.Equal(a.Old, b.Old) && diff.Equal(a.New, b.New)
	})
}

// withoutBools replaces truth values by the numbers that Python has for them.
func withoutBools(v any) any {
	switch v := v.(type) {
	case bool:
		if v {
			return 1
		}
		return 0
	case []any:
		list := make([]any, len(v))
		for i, item := range v {
			list[i] = withoutBools(item)
		}
		return list
	case map[string]any:
		object := make(map[string]any, len(v))
		for key, item := range v {
			object[key] = withoutBools(item)
		}
		return object
	}
	return v
}
