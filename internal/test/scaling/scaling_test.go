package scaling

import (
	"testing"
	"testing/synctest"
	"time"
)

type recorder struct {
	testing.TB
	failed bool
}

func (r *recorder) Helper() {}

func (r *recorder) Errorf(string, ...any) { r.failed = true }

func TestQuadraticTimeFails(t *testing.T) {
	for name, test := range map[string]struct {
		time   func(n int) time.Duration
		failed bool
	}{
		"constant":     {func(int) time.Duration { return time.Second }, false},
		"proportional": {func(n int) time.Duration { return time.Duration(n) * time.Second }, false},
		"quadratic":    {func(n int) time.Duration { return time.Duration(n*n) * time.Second }, true},
	} {
		synctest.Test(t, func(t *testing.T) {
			r := &recorder{}
			Check(r, 100, func(n int) { time.Sleep(test.time(n)) })
			if r.failed != test.failed {
				t.Errorf("%s: failed: %t, want %t", name, r.failed, test.failed)
			}
		})
	}
}
