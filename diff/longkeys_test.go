package diff

import (
	"fmt"
	"strings"
	"testing"
)

// A path is repeated for each change below it. A tenant chooses the length of its keys.
func TestLongPathsAreNotRepeatedTooOften(t *testing.T) {
	for name, test := range map[string]struct {
		key, leaves int
		want        int // items
	}{
		"an ordinary key, many changes": {freePath, 60_000, 60_000},
		"a long key, a few changes":     {20_000, 100, 100},
		"a long key, many changes":      {20_000, 15_000, 1},
		"a huge key, two changes":       {3 << 20, 2, 1},
	} {
		side := func(value string) map[string]any {
			leaves := map[string]any{}
			for i := range test.leaves {
				leaves[fmt.Sprint(i)] = value
			}
			return map[string]any{"other": value, strings.Repeat("k", test.key): leaves}
		}
		found := Of(side("a"), side("b"))
		if len(found) != test.want+1 { // and the other field
			t.Errorf("%s: %d items, want %d", name, len(found), test.want+1)
		}
		if got, most := len(found.String()), 7<<20; got > most {
			t.Errorf("%s: the text has %d bytes", name, got)
		}
	}
}
