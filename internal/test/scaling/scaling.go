// Package scaling checks that the time of a function is proportional to its input. Limits in
// seconds fail on slow machines.
package scaling

import (
	"testing"
	"time"
)

const (
	// times is the ratio of the larger input to the smaller one.
	times = 16
	// slack is the ratio of the longest allowed time to the proportional one. That of
	// quadratic time is times.
	slack = 4
	// attempts is the number of measurements, one of which must succeed: other programs can
	// make proportional time look longer, but not quadratic time look proportional.
	attempts = 10
)

// Check fails the test if the time of run is not about proportional to n. It calls run with
// the number few and with 16 times as much.
func Check(t testing.TB, few int, run func(n int)) {
	t.Helper()
	measure := func(n int) time.Duration {
		began := time.Now()
		run(n)
		return time.Since(began)
	}
	var short, long time.Duration
	for range attempts {
		short, long = measure(few), measure(few*times)
		if long <= slack*times*short {
			return
		}
	}
	t.Errorf("%d takes %v, and %d takes %v", few, short, few*times, long)
}
