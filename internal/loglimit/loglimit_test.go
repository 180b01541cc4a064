package loglimit

import (
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestAFewLinesOfEachKindPassPerMinute(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var l Limiter
		passed := 0
		for range 1000 {
			if ok, _ := l.Allow("a"); ok {
				passed++
			}
		}
		if passed != burst {
			t.Errorf("%d lines passed", passed)
		}
		if ok, suppressed := l.Allow("b"); !ok || suppressed != 0 {
			t.Errorf("another kind: %v, %d", ok, suppressed)
		}
		time.Sleep(interval)
		if ok, suppressed := l.Allow("a"); !ok || suppressed != 1000-burst {
			t.Errorf("a minute later: %v, %d", ok, suppressed)
		}
		if ok, suppressed := l.Allow("a"); !ok || suppressed != 0 {
			t.Errorf("after that: %v, %d", ok, suppressed)
		}
	})
}

func TestLongTextsAreCut(t *testing.T) {
	for text, want := range map[string]string{
		"": "", "short": "short", strings.Repeat("x", 200): strings.Repeat("x", 200),
		strings.Repeat("ü", 201): strings.Repeat("ü", 200) + "…",
	} {
		if got := Cut(text); got != want {
			t.Errorf("got %q", got)
		}
	}
}

func TestABucketAllowsABurstAndThenARate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var b Bucket
		passed := func(lines int) (n, suppressed int) {
			for range lines {
				ok, omitted := b.Allow()
				if ok {
					n++
				}
				suppressed += omitted
			}
			return n, suppressed
		}
		if n, _ := passed(2000); n != bucketBurst {
			t.Errorf("%d lines at once, want %d", n, bucketBurst)
		}
		time.Sleep(time.Second)
		if n, omitted := passed(2000); n != bucketRate || omitted != 2000-bucketBurst {
			t.Errorf("%d lines after a second, and %d suppressed before", n, omitted)
		}
		time.Sleep(time.Hour)
		if n, _ := passed(2000); n != bucketBurst {
			t.Errorf("%d lines after an hour, want %d", n, bucketBurst)
		}
	})
}
