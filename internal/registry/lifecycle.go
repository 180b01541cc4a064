package registry

import "time"

// Due is a handler that is due.
type Due struct {
	ID      string
	Retries int
	Started time.Time
}

// Lifecycle chooses which of the due handlers are run in this turn, and in
// which order. The rest stays due for the next one.
type Lifecycle func(due []Due) []Due

// SubOptions say how sub-handlers are run.
type SubOptions struct {
	Lifecycle Lifecycle // nil for that of the operator
	Parallel  int       // how many run at the same time; 0 and 1 are one after another
}
