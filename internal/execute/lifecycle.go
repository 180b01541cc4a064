// Package execute runs the handlers that were chosen, once: attempts, their
// limits, panics, sub-handlers. User code is called here and nowhere else.
package execute

import "time"

// Candidate is a handler that is due.
type Candidate struct {
	ID      string
	Retries int
	Started time.Time
}

// Lifecycle chooses which of the due handlers are run in this turn, and in
// which order. The rest stays due for the next one.
type Lifecycle func(due []Candidate) []Candidate
