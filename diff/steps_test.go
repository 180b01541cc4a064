package diff

import (
	"strconv"
	"testing"
)

// Deep below, the paths of many changes would take much memory: one item stands for all.
func TestManyDeepChangesBecomeOneItem(t *testing.T) {
	const depth, maxKeys = 17, 1 << 20 // the constants of the package, as numbers
	above := 0                         // the keys in the paths of the levels above
	for d := range depth {
		above += d + 1
	}
	most := (maxKeys - above) / (depth + 1)
	for n, want := range map[int]int{most: most, most + 1: 1} {
		old, new := map[string]any{}, map[string]any{}
		for i := range n {
			key := strconv.Itoa(i)
			old[key], new[key] = int64(1), int64(2)
		}
		for range depth {
			old, new = map[string]any{"k": old}, map[string]any{"k": new}
		}
		if got := Of(old, new); len(got) != want {
			t.Errorf("%d changes: got %d items, want %d", n, len(got), want)
		}
	}
}

func TestTextsOfItemsKeepHTML(t *testing.T) {
	if got, want := (Item{Op: Add, Path: []string{"a"}, New: "<b>&"}).String(), `add a: "<b>&"`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}
