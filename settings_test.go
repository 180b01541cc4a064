package gopf

import (
	"iter"
	"slices"
	"testing"
	"time"
)

// firstOf takes up to n elements.
func firstOf(n int, all iter.Seq[time.Duration]) (found []time.Duration) {
	for d := range all {
		if len(found) == n {
			break
		}
		found = append(found, d)
	}
	return found
}

func TestPausesEndAndEndlessPausesRepeatTheLast(t *testing.T) {
	cases := map[string]struct{ got, want []time.Duration }{
		"pauses":              {firstOf(5, Pauses(1, 2)), []time.Duration{1, 2}},
		"endless pauses":      {firstOf(5, EndlessPauses(1, 2)), []time.Duration{1, 2, 2, 2, 2}},
		"one endless pause":   {firstOf(3, EndlessPauses(7)), []time.Duration{7, 7, 7}},
		"few of endless ones": {firstOf(1, EndlessPauses(1, 2)), []time.Duration{1}},
		"no endless pauses":   {firstOf(3, EndlessPauses()), nil},
	}
	for name, c := range cases {
		if !slices.Equal(c.got, c.want) {
			t.Errorf("%s: got %v, want %v", name, c.got, c.want)
		}
	}
}
