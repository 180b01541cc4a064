package diff_test

import (
	"fmt"
	"maps"
	"testing"

	"gopf.dev/gopf/diff"
	"gopf.dev/gopf/internal/test/scaling"
)

// nested returns nested objects, each with one more value next to the inner object.
func nested(depth, beside, bottom int) map[string]any {
	v := map[string]any{"bottom": bottom}
	for range depth {
		v = map[string]any{"a": v, "b": beside}
	}
	return v
}

func TestTimeIsLinearInTheDepth(t *testing.T) {
	t.Parallel()
	for name, run := range map[string]func(depth int) int{
		"equal":   func(depth int) int { return len(diff.Of(nested(depth, 1, 1), nested(depth, 1, 1))) },
		"bottom":  func(depth int) int { return len(diff.Of(nested(depth, 1, 1), nested(depth, 1, 2))) },
		"left":    func(depth int) int { return len(diff.Left(nested(depth, 1, 1), nested(depth, 1, 2))) },
		"at":      func(depth int) int { return len(diff.Of(nil, nested(depth, 1, 1)).At("a", "a")) },
		"all":     func(depth int) int { return len(diff.Of(nested(depth, 1, 1), nested(depth, 2, 1))) },
		"unequal": func(depth int) int { return len(diff.Of(nested(depth, 1, 1), nested(depth-1, 2, 1))) },
	} {
		t.Run(name, func(t *testing.T) {
			scaling.Check(t, 625, func(depth int) {
				if found := run(depth); (found == 0) != (name == "equal") {
					t.Errorf("%d items", found)
				}
			})
		})
	}
}

func TestTheTotalLengthOfPathsIsLimited(t *testing.T) {
	t.Parallel()
	wide := func(depth, value int) any {
		fields := map[string]any{}
		for i := range 50_000 {
			fields[fmt.Sprint(i)] = value
		}
		var v any = fields
		for range depth {
			v = map[string]any{"a": v}
		}
		return v
	}
	steps := func(d diff.Diff) (sum int) {
		for _, item := range d {
			sum += len(item.Path)
		}
		return sum
	}
	if d := diff.Of(wide(10, 1), wide(10, 2)); len(d) != 50_000 {
		t.Errorf("%d items in a shallow object, want all", len(d))
	}
	deep := diff.Of(wide(500, 1), wide(500, 2))
	if len(deep) != 1 || len(deep[0].Path) != 500 || deep[0].Op != diff.Change {
		t.Errorf("%d items in a deep object, want one of the whole", len(deep))
	}
	if at := deep.At(append(deep[0].Path, "17")...); len(at) != 1 || at[0].Old != 1 || at[0].New != 2 {
		t.Errorf("inside of the whole: %v", at)
	}
	if n := steps(diff.Of(nested(10_000, 1, 1), nested(10_000, 2, 1))); n > 2<<20 {
		t.Errorf("all paths together have %d keys", n)
	}
}

func TestTheNumberOfDifferencesIsLimited(t *testing.T) {
	t.Parallel()
	wide := func(n int, prefix string) map[string]any {
		fields := map[string]any{}
		for i := range n {
			fields[prefix+fmt.Sprint(i)] = 0
		}
		return fields
	}
	const many = 40_000 // keys that are added, and as many that are removed
	for name, test := range map[string]struct {
		wrap func(map[string]any) any
		want string // the paths of the differences
	}{
		"the whole value":  {func(v map[string]any) any { return v }, "[[]]"},
		"the first level":  {func(v map[string]any) any { return map[string]any{"a": v, "same": wide(10, "")} }, "[[a]]"},
		"the second level": {func(v map[string]any) any { return map[string]any{"a": map[string]any{"b": v, "same": 0}} }, "[[a b]]"},
		"the fourth level": {func(v map[string]any) any {
			return map[string]any{"a": map[string]any{"b": map[string]any{"c": v}, "d": len(v["name"].(string))}}
		}, "[[a b] [a d]]"},
	} {
		old, new := wide(many, "old"), wide(many, "new")
		old["name"], new["name"] = "x", "long"
		old["null"] = nil // is the same as an absent key
		before, after := test.wrap(old), test.wrap(new)
		for range 3 { // it must not depend on the order of keys
			var paths [][]string
			for _, item := range diff.Of(before, after) {
				if item.Op != diff.Change {
					t.Errorf("%s: %s of %v", name, item.Op, item.Path)
				}
				paths = append(paths, item.Path)
			}
			if got := fmt.Sprint(paths); got != test.want {
				t.Errorf("%s: %s, want %s", name, got, test.want)
			}
		}
		if items := diff.Of(before, test.wrap(maps.Clone(old))); len(items) > 0 {
			t.Errorf("%s: %v", name, items)
		}
	}
}
