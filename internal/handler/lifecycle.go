package handler

import "time"

// Due describes a handler that is due.
type Due struct {
	ID       string
	Attempts int       // the number of earlier attempts
	Started  time.Time // the start of the first attempt
}

// Lifecycle chooses which of the due handlers run in this pass, and in which order. The
// others stay due.
type Lifecycle func(due []Due) []Due

// SubOptions configures a pass over sub-handlers.
type SubOptions struct {
	Lifecycle Lifecycle // nil means the operator's lifecycle
	Parallel  int       // the number of concurrent calls; 0 and 1 mean one at a time
}
