// Package jitter spreads the framework's own retries over time. Without it, all
// operators that an outage has stopped would retry at the same instants.
//
// Delays of handlers get no jitter: they are what the user asked for.
package jitter

import "time"

// Parts of a delay that jitter may take off.
const (
	// Slight is for retries whose delays users set or read in the docs.
	Slight = 0.2
	// Strong is for reconnecting, where all watches of all operators begin at the
	// same instant.
	Strong = 0.5
)

// Source returns random numbers from 0 up to, but not including, 1. It must be safe
// for concurrent use. nil means no jitter: delays are exact, as tests in virtual
// time want them.
type Source func() float64

// Shorten returns the delay without a random part of it, which is at most the given
// one. The delay is a maximum that users rely on, so jitter never lengthens it. What
// is taken off is a whole number of milliseconds, so that log lines stay readable.
func (s Source) Shorten(d time.Duration, most float64) time.Duration {
	if s == nil || d <= 0 {
		return d
	}
	return d - time.Duration(s()*most*float64(d)).Truncate(time.Millisecond)
}
