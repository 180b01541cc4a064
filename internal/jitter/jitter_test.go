package jitter_test

import (
	"testing"
	"time"

	"gopf.dev/gopf/internal/jitter"
)

const ms = time.Millisecond

func TestJitterShortensAndNeverLengthens(t *testing.T) {
	for name, c := range map[string]struct {
		random float64
		delay  time.Duration
		most   float64
		want   time.Duration
	}{
		"no jitter":                  {0, time.Second, jitter.Slight, time.Second},
		"half of a fifth":            {0.5, time.Second, jitter.Slight, 900 * ms},
		"up to a fifth":              {0.9999, time.Second, jitter.Slight, 801 * ms},
		"up to a half":               {0.9999, time.Second, jitter.Strong, 501 * ms},
		"in whole milliseconds":      {0.12345, time.Second, jitter.Slight, 976 * ms},
		"long delays":                {0.5, 610 * time.Second, jitter.Slight, 549 * time.Second},
		"too short for milliseconds": {0.9999, 2 * ms, jitter.Slight, 2 * ms},
		"no delay":                   {0.5, 0, jitter.Slight, 0},
		"a negative delay":           {0.5, -time.Second, jitter.Slight, -time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			source := jitter.Source(func() float64 { return c.random })
			if got := source.Shorten(c.delay, c.most); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestDelaysAreExactWithoutASource(t *testing.T) {
	if got := jitter.Source(nil).Shorten(time.Second, jitter.Strong); got != time.Second {
		t.Errorf("got %s", got)
	}
}
