// Package scaling checks that the time of a function is proportional to its input. Limits in
// seconds fail on slow machines.
package scaling

import (
	"testing"
	"time"
)

const (
	// times is how much more the larger input has.
	times = 16
	// slack is how much longer than expected the larger input may take. Quadratic time is
	// longer by times.
	slack = 4
	// attempts is how often the measurement is repeated if it fails: other programs can make
	// proportional time look longer, but not quadratic time look proportional each time.
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
