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

func TestRequestsAreRetriedAfterTheErrorDelays(t *testing.T) {
	cases := map[string]struct {
		settings NetworkingSettings
		want     []time.Duration // the first five
	}{
		"finite":                {NetworkingSettings{ErrorDelays: []time.Duration{1, 2}}, []time.Duration{1, 2}},
		"endless":               {NetworkingSettings{ErrorDelays: []time.Duration{1, 2}, RetryForever: true}, []time.Duration{1, 2, 2, 2, 2}},
		"one, endless":          {NetworkingSettings{ErrorDelays: []time.Duration{7}, RetryForever: true}, []time.Duration{7, 7, 7, 7, 7}},
		"none":                  {NetworkingSettings{}, nil},
		"more than are needed":  {NetworkingSettings{ErrorDelays: []time.Duration{1, 2, 3, 4, 5, 6}}, []time.Duration{1, 2, 3, 4, 5}},
		"none, repeated at all": {NetworkingSettings{RetryForever: true}, nil},
	}
	for name, c := range cases {
		if got := firstOf(5, c.settings.backoffs()); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}
