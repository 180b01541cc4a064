// Package jitter spreads the framework's own retries over time. Without it, all
// operators would retry at the same instants after an outage.
//
// Delays that handlers return get no jitter, because users expect them to be exact.
package jitter

import "time"

// Maximum parts of a delay that jitter removes.
const (
	// Slight is for retries whose delays users set or read in the docs.
	Slight = 0.2
	// Strong is for reconnects, because all watches of all operators lose their
	// connections at the same instant.
	Strong = 0.5
)

// Source returns random numbers from 0 up to, but not including, 1. It must be safe
// for concurrent use. nil means no jitter: delays are exact, which tests in virtual time
// rely on.
type Source func() float64

// Shorten returns d minus a random part of it. most is the maximum of that part, from 0
// to 1. Jitter never lengthens a delay, because users rely on it as a maximum. It removes
// whole milliseconds to keep log lines readable. Delays up to 0 are returned unchanged.
func (s Source) Shorten(d time.Duration, most float64) time.Duration {
	if s == nil || d <= 0 {
		return d
	}
	return d - time.Duration(s()*most*float64(d)).Truncate(time.Millisecond)
}
